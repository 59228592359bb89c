"""Simulated worlds with a past, the changes that are planned in them, and the decisions of their logs."""

from collections.abc import Callable

from msgspec import structs

from engine.log import port
from engine.plans import planning
from engine.plans.predictions import Prediction
from engine.plans.questions import Question
from engine.plans.recorded_shards import RecordedShards
from events import codec, decisions, records, shapes, topics
from tests.simulation import profiles, world
from tests.simulation.moves import clusters, overrides, playing, policies, templates
from tests.simulation.world import Move

_MOVES_BEFORE = 15

Decided = tuple[int, str, str, str]
"""Instant, type, subject and clusters of a decision."""

PLANNED: list[Move] = [
    templates.apply_template,
    policies.apply_policy,
    clusters.taint,
    clusters.untaint,
    clusters.label,
    templates.rebalance,
    policies.delete_policy,
    templates.delete_template,
    overrides.apply_override,
    clusters.depart,
]


async def predict(
    log: port.NumberedLog, question: Question, progress: Callable[[int], None] = lambda _: None
) -> Prediction:
    """Predict a change in this process; a second fork predicts what happens without the change."""
    fork = await planning.prepare(log, question, RecordedShards())

    async def unchanged() -> Prediction:
        same = structs.replace(planning.without_change(question), number=fork.number)
        return await planning.outcome(await planning.prepare(log, same, RecordedShards()), same)

    return await planning.predict_on(fork, question, unchanged, progress)


async def rested(seed: int) -> world.World:
    """Return a world with a history, stable, after a restart."""
    profile = (profiles.EDITS, profiles.STORMS, profiles.PRIORITIES)[seed % 3]
    played = world.World(seed, profile.members, profile.scope)
    await profile.begin(played)
    await playing.play(played, _MOVES_BEFORE, weights=profile.weights, end=profile.end)
    await played.crash()
    await played.settle()
    return played


def placements(engine: world.worker.Worker) -> dict[str, tuple[object, ...]]:
    """Return where each binding is, with its condition and evictions."""
    return {
        key: (
            binding.clusters,
            binding.condition,
            binding.message,
            tuple(task.cluster for task in binding.tasks),
        )
        for fold in engine.folds
        for key, binding in fold.state.bindings.items()
    }


def decided(log: list[records.StoredRecord]) -> list[Decided]:
    """Return the decisions of a log in order, each with the instant of its step."""
    made: list[Decided] = []
    step_ms: dict[int, int] = {}
    for record in log:
        decoded = codec.decode(record)
        if record.topic != topics.DECISIONS or not isinstance(decoded, codec.Decoded):
            continue
        if isinstance(decoded.data, decisions.StepTaken):
            step_ms[record.partition] = decoded.data.time_ms
        else:
            made.append((step_ms[record.partition], *_named(decoded.data)))
    return made


def _named(data: shapes.Event) -> tuple[str, str, str]:
    subject = getattr(data, "key", getattr(data, "name", ""))
    return type(data).__name__, str(subject), str(getattr(data, "clusters", ""))
