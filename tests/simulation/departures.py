"""Checker of cluster departures, from the log alone.

``leaving``: a shard that knows that a cluster is leaving assigns nothing to it. ``left``: a cluster that the
engine removes was leaving, has no works, and reported all workloads as gone, unless it was not ready
meanwhile; in a stable world no cluster is leaving.
"""

from collections.abc import Iterable, Iterator

import msgspec

from events import clusters, codec, decisions, health, topics, works
from events.records import StoredRecord
from events.validation import verdicts

Place = tuple[str, str]
"""Cluster name and binding key."""


class _Stay(msgspec.Struct):
    """Interval in which a cluster was leaving, in offsets of ``clusters``; ``was_silent``: it was not ready then."""

    start: int
    end: int | None = None
    was_silent: bool = False


class _History(msgspec.Struct):
    stays: dict[str, list[_Stay]] = {}
    ready: dict[str, bool] = {}
    heard_ms: dict[str, int] = {}
    works: set[Place] = set()
    removals: dict[Place, tuple[int, int]] = {}
    known: dict[tuple[int, int], int] = {}

    def leaving(self, name: str) -> _Stay | None:
        stays = self.stays.get(name, [])
        return stays[-1] if stays and stays[-1].end is None else None


def check(records: Iterable[StoredRecord], taken: Iterable[verdicts.Taken]) -> list[str]:
    """Return all violations, each with the position of the record that shows it."""
    inputs = {verdict.record.position: verdict for verdict in taken}
    seen, violations = _History(), list[str]()
    for record in records:
        if record.topic in (topics.CLUSTERS, topics.HEALTH):
            wrongs = _observe(seen, inputs[record.position]) if record.position in inputs else ()
        else:
            decoded = codec.decode(record)
            wrongs = _decide(seen, decoded.data) if isinstance(decoded, codec.Decoded) else ()
        violations += [f"{wrong} ({record.position})" for wrong in wrongs]
    return violations + [f"left: {name} is leaving still" for name in seen.stays if seen.leaving(name)]


def _observe(seen: _History, verdict: verdicts.Taken) -> Iterator[str]:
    match verdict.data:
        case clusters.ClusterLeaving(name=name) if seen.leaving(name) is None:
            was_silent = not seen.ready.get(name, False)
            seen.stays.setdefault(name, []).append(_Stay(verdict.record.offset, was_silent=was_silent))
        case clusters.ClusterLeft(name=name, uid=uid):
            stay = seen.leaving(name)
            if uid:
                yield from _judge(seen, name, stay)
            if stay is not None:
                stay.end = verdict.record.offset
            seen.ready.pop(name, None)
            seen.removals = {
                work_key: removal for work_key, removal in seen.removals.items() if work_key[0] != name
            }
        case clusters.ClusterHealthChanged(name=name) as report:
            if report.silent and seen.heard_ms.get(name, 0) > report.heard_ms:
                return
            seen.ready[name] = report.ready and not report.silent
            if not report.silent:
                seen.heard_ms[name] = verdict.at_ms
            stay = seen.leaving(name)
            if stay is not None and not seen.ready[name]:
                stay.was_silent = True
        case health.WorkloadGone(cluster=name, key=key, term=term, step=step):
            if (term, step) >= seen.removals.get((name, key), (term, step + 1)):
                del seen.removals[name, key]
        case _:
            pass


def _judge(seen: _History, name: str, stay: _Stay | None) -> Iterator[str]:
    if stay is None:
        yield f"left: {name} has left, and was not to leave"
        return
    if kept := sorted(key for cluster, key in seen.works if cluster == name):
        yield f"left: {name} has left with {kept}"
    awaited = sorted(key for cluster, key in seen.removals if cluster == name)
    if awaited and not stay.was_silent:
        yield f"left: {name} has left, and did not say that {awaited} are gone"


def _decide(seen: _History, data: object) -> Iterator[str]:
    match data:
        case decisions.StepTaken(shard=shard, number=number, ends=ends):
            seen.known[shard, number] = ends[topics.CLUSTERS]
        case works.WorkApplied(cluster=name, key=key) as work:
            known = seen.known[work.shard, work.step]
            for stay in seen.stays.get(name, []):
                if stay.start < known and (stay.end is None or known <= stay.end):
                    yield f"leaving: {name} is leaving, and gets {key}"
            seen.works.add((name, key))
            seen.removals.pop((name, key), None)
        case works.WorkSuspended(cluster=name, key=key):
            seen.works.add((name, key))
            seen.removals.pop((name, key), None)
        case works.WorkRemoved(cluster=name, key=key) as work:
            seen.works.discard((name, key))
            seen.removals[name, key] = (work.term, work.step)
        case _:
            pass
