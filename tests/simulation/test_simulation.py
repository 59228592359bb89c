"""Random edits, taints, faults and crashes: the design's invariants hold at the end of every run.

A failing seed prints the command that repeats it. Faults found here become named examples in
``tests/deciders``, because a seed gives another run as soon as a move is added.
"""

import msgspec
import pytest

from engine.deciders import cluster_departure, required_bindings, scheduling
from engine.overrides import selection
from engine.placement.decisions import Columns, Decision
from engine.placement.requests import Request
from tests.rounds import ROUNDS
from tests.simulation import checks, profiles, world
from tests.simulation.moves import playing

_SEEDS = 75 * ROUNDS
_BATCH = 25
_MOVES = 40


async def placing() -> world.World:
    """Return the world of the first seed in which a binding is placed."""
    for seed in range(10):
        played = world.World(seed)
        await played.start()
        await playing.play(played, _MOVES)
        if any(fold.state.placements for fold in played.worker.folds):
            return played
    raise AssertionError("nothing is ever placed")


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, _SEEDS, _BATCH))
async def test_invariants_hold(start: int) -> None:
    assert await profiles.failing(profiles.EDITS, range(start, start + _BATCH), _MOVES) == ""


async def test_run_is_repeated_by_its_seed() -> None:
    logs: list[list[bytes]] = []
    for _ in range(2):
        played = world.World(7)
        await played.start()
        await playing.play(played, _MOVES)
        logs.append([record.checksum for record in await checks.all_records(played.log)])
    assert logs[0] == logs[1]


@pytest.mark.slow
async def test_lost_replica_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    real = scheduling.schedule.schedule

    class Short(Decision, frozen=True, kw_only=True):
        @property
        def columns(self) -> Columns:
            names, replicas = super().columns
            return names, [*replicas[:-1], *(max(last - 1, 0) for last in replicas[-1:])]

    def broken(*args: object, **options: object) -> Decision:
        decision = real(*args, **options)  # pyright: ignore[reportArgumentType]  # handed on as it came
        fields = {name: getattr(decision, name) for name in Decision.__struct_fields__}
        return Short(**fields)

    monkeypatch.setattr(scheduling.schedule, "schedule", broken)
    assert await profiles.is_violated(profiles.EDITS, "4:", 10, _MOVES)


@pytest.mark.slow
async def test_ignored_taints_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    real = scheduling.request_of

    def broken(*args: object) -> object:
        request = real(*args)  # pyright: ignore[reportArgumentType]  # handed on as it came
        everything = [{"operator": "Exists"}]
        placement = msgspec.to_builtins(request.placement) | {"clusterTolerations": everything}
        tolerant = msgspec.convert(placement, type(request.placement))
        return msgspec.structs.replace(request, placement=tolerant)

    monkeypatch.setattr(scheduling, "request_of", broken)
    assert await profiles.is_violated(profiles.EDITS, "5:", 10, _MOVES)


@pytest.mark.slow
async def test_forgotten_override_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    real = selection.Overrides.policies_for

    def broken(*args: object) -> list[selection.KnownOverride]:
        return list(real(*args))[1:]  # pyright: ignore[reportArgumentType]  # handed on as it came

    monkeypatch.setattr(selection.Overrides, "policies_for", broken)
    assert await profiles.is_violated(profiles.EDITS, "overrides:", 10, _MOVES)


@pytest.mark.slow
async def test_forgotten_dependency_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> frozenset[str]:
        return required_bindings.NO_CLUSTERS

    monkeypatch.setattr(required_bindings, "clusters", broken)
    assert await profiles.is_violated(profiles.EDITS, "dependencies:", 100, _MOVES)


@pytest.mark.slow
async def test_cluster_removed_too_early_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bool:
        return True

    monkeypatch.setattr(cluster_departure, "_is_clear", broken)
    assert await profiles.is_violated(profiles.EDITS, "left:", 50, _MOVES)


@pytest.mark.slow
async def test_cluster_that_never_leaves_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bool:
        return False

    monkeypatch.setattr(cluster_departure, "_is_clear", broken)
    assert await profiles.is_violated(profiles.EDITS, "left:", 10, _MOVES)


async def test_changed_rule_is_detected_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    played = await placing()

    def careless(_: Request) -> str:
        return "Careless"

    monkeypatch.setattr(scheduling, "_mode", careless)
    wrong = await checks.check(played)
    assert any(line.startswith("3:") for line in wrong)
