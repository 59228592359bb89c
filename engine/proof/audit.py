"""Audit of a log: decide every recorded step again with this release, optionally with changed policies, and compare.

Each step is decided from the state after the recorded steps before it, so a differing decision does not make later
decisions differ. For this, each shard has two folds: one applies the recorded steps, the other decides. After a step
that differs, the second fold is replaced by a copy of the first.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

import msgspec
from msgspec import Struct

from engine.deciders import shard_fold
from engine.log import port
from engine.proof import override_audit, verification
from engine.proof import rules as audit_rules
from engine.reconcilers import explanation, explanation_types, recovery, replay
from events import codec, decisions, records, shapes, times, topics
from events.json_values import Json

_SCHEDULED: Final = (decisions.ScheduleDecided, decisions.ScheduleFailed)


class Difference(Struct, rename="camel", kw_only=True):
    """New decisions of one step on one key that differ from the recorded decisions.

    ``recorded`` and ``decided`` have the differing events, by type. Scheduling decisions also have explanations: of the
    new decision and, if policies are changed, of this release's decision with the recorded policies.
    """

    key: str
    shard: int
    step: int
    number: int
    time: str
    release: str
    reason: str
    recorded: dict[str, Json]
    decided: dict[str, Json]
    recorded_explanation: explanation_types.Explained | None = None
    decided_explanation: explanation_types.Explained | None = None


class Group(Struct, rename="camel"):
    """Differences with the same reason: their number, the number of keys, and the first examples."""

    reason: str
    count: int
    keys: int
    examples: list[Difference]


class Audit(Struct, rename="camel", kw_only=True):
    """Result of an audit: numbers of audited and of differing steps and decisions, and the differences by reason.

    ``manifests`` are the differences between the recorded manifests and those under the changed rules.
    """

    steps: int = 0
    decisions: int = 0
    differing_steps: int = 0
    differing: int = 0
    groups: list[Group] = []
    manifests: list[override_audit.ManifestGroup] = []
    unreadable: dict[int, str] = {}


async def audit(
    log: port.Log,
    shards: Sequence[int],
    rules: audit_rules.Rules = audit_rules.UNCHANGED,
    *,
    first: int = 1,
    last: int | None = None,
    progress: verification.Progress | None = None,
) -> Audit:
    """Decide the steps of ``shards`` from number ``first`` to ``last`` (None: the end) again; compare the decisions."""
    changed = audit_rules.ChangedLog(log, rules)
    result = Audit()
    groups: dict[str, Group] = {}
    keys: dict[str, set[str]] = {}
    overridden = override_audit.OverrideAudit(log, rules)
    replayed = replay.Replay(changed, shards, doubled=True, last=last)
    async for step in replayed.steps():
        recorded, taken = step.recorded, step.recorded.taken
        number = recorded.record.number
        second = cast("shard_fold.ShardFold", step.second)
        # With changed policies, the second fold may have more or fewer queued keys than the first. Choose how many
        # keys it decides so that both folds have equally many queued keys after this step.
        budget = max(0, taken.processed + second.queued - step.fold.queued)
        decided = second.decide(step.facts, taken.time_ms, budget, term=taken.term)
        step.fold.replay(step.facts, taken, recorded.record.value, recorded.data)
        differences = list(_differences(recorded, decided.records))
        if differences or decided.taken.processed != taken.processed:
            replayed.copy_to_second(taken.shard)
        if number < first:
            continue
        await overridden.take(step.fold, step.facts, recorded)
        result.steps += 1
        result.decisions += len(recorded.data)
        result.differing_steps += bool(differences)
        result.differing += len(differences)
        for difference in differences:
            group = groups.setdefault(difference.reason, Group(difference.reason, 0, 0, []))
            group.count += 1
            keys.setdefault(difference.reason, set()).add(difference.key)
            group.keys = len(keys[difference.reason])
            if len(group.examples) < override_audit.EXAMPLES_MAX:
                group.examples.append(difference)
        if progress is not None:
            progress(number, result.steps)
    for fold, facts in replayed.shards.values():
        await overridden.close(fold, facts)
    result.manifests = overridden.groups
    result.unreadable = {shard: str(error) for shard, error in replayed.unreadable.items()}
    result.groups = list(groups.values())
    return result


def merged(audits: Iterable[Audit]) -> Audit:
    """Merge the results of audits of different shards into the result for the log."""
    total = Audit()
    groups: dict[str, Group] = {}
    audits = list(audits)
    total.manifests = override_audit.merged(audit.manifests for audit in audits)
    for audit in audits:
        total.steps += audit.steps
        total.decisions += audit.decisions
        total.differing_steps += audit.differing_steps
        total.differing += audit.differing
        total.unreadable |= audit.unreadable
        for group in audit.groups:
            same = groups.setdefault(group.reason, Group(group.reason, 0, 0, []))
            same.count += group.count
            # A key belongs to one shard, so no key is counted twice.
            same.keys += group.keys
            same.examples = sorted([*same.examples, *group.examples], key=lambda example: example.number)[
                : override_audit.EXAMPLES_MAX
            ]
    total.groups = sorted(groups.values(), key=lambda group: (-group.count, group.reason))
    return total


async def explain(log: port.Log, audit: Audit, rules: audit_rules.Rules) -> None:
    """Add explanations to those examples of an audit's result that contain scheduling decisions."""
    changed = audit_rules.ChangedLog(log, rules)
    scheduled = {_name(struct) for struct in _SCHEDULED}
    for group in audit.groups:
        for example in group.examples:
            if scheduled.isdisjoint(example.recorded | example.decided):
                continue
            example.decided_explanation = await explanation.of_step(changed, example.key, example.step)
            if not rules.are_unchanged:
                example.recorded_explanation = await explanation.of_step(log, example.key, example.step)


def _differences(step: recovery.RecordedStep, decided: Sequence[records.Record]) -> Iterator[Difference]:
    """Yield the differences between a recorded step and its new decision, by key."""
    others = [record for record in decided[1:] if record.topic == topics.DECISIONS]
    if len(step.data) == len(others) and all(
        output.checksum == other.checksum for output, other in zip(step.outputs, others, strict=True)
    ):
        return
    recorded, again = _by_key(step.data), _by_key(map(codec.event_of, others))
    for key in {**recorded, **again}:
        before, after = recorded.get(key, {}), again.get(key, {})
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        if names:
            yield Difference(
                key=key,
                shard=step.taken.shard,
                step=step.taken.number,
                number=step.record.number,
                time=times.to_text(step.taken.time_ms),
                release=step.taken.release,
                reason=_reason(before, after, names),
                recorded={name: before[name] for name in names if name in before},
                decided={name: after[name] for name in names if name in after},
            )


def _name(struct: type[shapes.Event]) -> str:
    """Return the name of an event's type without the namespace."""
    return struct.event_type.name.rpartition(".")[2]


def _by_key(events: Iterable[shapes.Event | None]) -> dict[str, dict[str, Json]]:
    """Return events as JSON, by key of their binding, rebalancer or cluster, then by type (numbered if repeated)."""
    result: dict[str, dict[str, Json]] = {}
    for data in filter(None, events):
        key = data.subject
        of_key = result.setdefault(key, {})
        name = short = _name(type(data))
        while name in of_key:
            name = f"{short} {len(of_key) + 1}"
        of_key[name] = cast("Json", msgspec.json.decode(codec.encode_data(data)))
    return result


def _reason(before: dict[str, Json], after: dict[str, Json], names: Sequence[str]) -> str:
    """Describe how decisions on a key differ: only by the first differing event, since later ones follow from it."""
    lost = [name for name in names if name not in after]
    gained = [name for name in names if name not in before]
    if lost and gained:
        return f"{gained[0]} instead of {lost[0]}"
    if lost:
        return f"no {lost[0]}"
    if gained:
        return f"also {gained[0]}"
    return f"{names[0]}: {', '.join(_fields(before[names[0]], after[names[0]]))}"


def _fields(before: Json, after: Json) -> list[str]:
    return [field for field in sorted(before.keys() | after.keys()) if before.get(field) != after.get(field)]
