"""Checker of preemption, from the log alone.

``preempted``: a victim has a lower priority than its preemptor had at its choice, was chosen by it, and was
offered by the victim's shard; the preemptor lacks capacity and may preempt. ``held``: a victim does not
return to the cluster before the hold ends, unless a rebalancer triggers it or it was deleted.
"""

from collections.abc import Iterable, Iterator

import msgspec

from events import codec, decisions, links, preemption_decisions
from events.records import StoredRecord

_HOLD_MS = 300_000


class _History(msgspec.Struct):
    ranks: dict[str, decisions.PriorityResolved] = {}
    blocked: dict[str, bool] = {}
    chosen: dict[tuple[str, str, str], tuple[int, int]] = {}
    offered: dict[tuple[str, int], set[tuple[str, str]]] = {}
    held: dict[tuple[str, str], int] = {}
    now_ms: dict[int, int] = {}


def check(records: Iterable[StoredRecord]) -> Iterator[str]:
    """Yield all violations, each with the position of the record that shows it."""
    seen = _History()
    for record in records:
        decoded = codec.decode(record)
        if isinstance(decoded, codec.Decoded):
            for wrong in _take(seen, record, decoded.data):
                yield f"{wrong} ({record.position})"


def _take(seen: _History, record: StoredRecord, data: object) -> Iterator[str]:
    match data:
        case decisions.StepTaken(shard=shard, time_ms=time_ms):
            seen.now_ms[shard] = time_ms
        case decisions.PriorityResolved(key=key):
            seen.ranks[key] = data
        case decisions.BindingWithdrawn(key=key):
            seen.ranks.pop(key, None)
            # A later binding with this key is a new one, to which the hold does not apply.
            seen.held = {hold: until_ms for hold, until_ms in seen.held.items() if hold[0] != key}
        case decisions.ScheduleFailed(key=key, reason=reason, retried=retried):
            seen.blocked[key] = retried and reason == "Unschedulable"
        case decisions.ScheduleDecided(key=key, clusters=clusters):
            seen.blocked[key] = False
            for cluster in clusters:
                if (key, cluster.name) in seen.held:
                    yield f"held: {key} returns to {cluster.name}"
        case _:
            yield from _preempt(seen, record, data)


def _preempt(seen: _History, record: StoredRecord, data: object) -> Iterator[str]:
    match data:
        case preemption_decisions.CapacityWanted(key=key):
            if not seen.blocked.get(key):
                yield f"preempted: {key} asks for room, which it does not lack"
            if _policy(seen, key) != "PreemptLowerPriority":
                yield f"preempted: {key} asks for room, which it may not"
        case links.CapacityOffered(key=key, number=number, occupants=occupants):
            offered = {(occupant.key, occupant.cluster) for occupant in occupants}
            seen.offered.setdefault((key, number), set()).update(offered)
        case preemption_decisions.PreemptionDecided():
            yield from _choose(seen, data)
        case decisions.EvictionStarted() if data.reason == "Preempted":
            yield from _leave(seen, data)
        case decisions.EvictionFinished(key=key, cluster=cluster, reason=reason):
            until_ms = seen.held.pop((key, cluster), 0)
            if until_ms and reason != "RescheduleTriggered" and seen.now_ms[record.partition] <= until_ms:
                yield f"held: {key} may return to {cluster} too early"
        case _:
            pass


def _choose(seen: _History, data: preemption_decisions.PreemptionDecided) -> Iterator[str]:
    for victim in data.victims:
        seen.chosen[data.key, victim.key, victim.cluster] = data.again_ms, _priority(seen, data.key)
        if (victim.key, victim.cluster) not in seen.offered.get((data.key, data.number), set()):
            yield f"preempted: {victim.key} was never offered to {data.key}"
        if victim.priority >= _priority(seen, data.key):
            yield f"preempted: {victim.key} is no less important than {data.key}"


def _leave(seen: _History, data: decisions.EvictionStarted) -> Iterator[str]:
    if (data.by, data.key, data.cluster) not in seen.chosen:
        yield f"preempted: {data.key} leaves {data.cluster} for {data.by}, which did not choose it"
        return
    # The priority with which it was chosen: a later one may still be on its way to the victim's shard.
    until_ms, priority = seen.chosen[data.by, data.key, data.cluster]
    if data.created_ms > until_ms:
        yield f"preempted: {data.key} leaves {data.cluster} for {data.by} too late"
    if _priority(seen, data.key) >= priority:
        yield f"preempted: {data.key} leaves {data.cluster} for {data.by}, which is no more important"
    seen.held[data.key, data.cluster] = data.created_ms + _HOLD_MS


def _priority(seen: _History, key: str) -> int:
    rank = seen.ranks.get(key)
    return 0 if rank is None or rank.priority is None else rank.priority


def _policy(seen: _History, key: str) -> str:
    rank = seen.ranks.get(key)
    return rank.preemption_policy if rank else ""
