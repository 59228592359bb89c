"""The clusters as the log shows them: taints, status and conditions after each record."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from events import clusters, policies, topics
from events.validation import verdicts

_CROWD_MIN = 3
_CROWD_PERCENT = 55


class ClusterState(msgspec.Struct, frozen=True):
    """A cluster; ``since`` is the offset of the report that began its current status."""

    taints: dict[tuple[str, str], int] = {}
    status: str = ""
    since: int = 0
    heard_ms: int = 0
    is_leaving: bool = False
    conditions: dict[str, str] = {}


Fleet = dict[str, ClusterState]


def is_crowd(fleet: Fleet) -> bool:
    """Whether so many clusters fail at once that none may be emptied."""
    troubled = sum(seen.status not in ("", "True") for seen in fleet.values())
    return troubled >= _CROWD_MIN and troubled * 100 >= _CROWD_PERCENT * len(fleet)


def wrong_taints(fleet: Fleet, taken: Iterable[verdicts.Taken]) -> Iterator[str]:
    """Yield the taints that policies demand but a cluster lacks, and those that should have been removed."""
    wanting: dict[str, dict[str, Any]] = {}
    for verdict in taken:
        match verdict.data:
            case policies.ConfigurationApplied(manifest=manifest) if verdict.record.key.startswith(
                "clustertaintpolicy:"
            ):
                wanting[verdict.record.key] = msgspec.json.decode(manifest)["spec"]
            case policies.ConfigurationDeleted():
                wanting.pop(verdict.record.key, None)
            case _:
                pass
    crowd = is_crowd(fleet)
    for name, seen in fleet.items():
        # The crowd holds back only clusters that are in trouble themselves.
        is_held = crowd and seen.status not in ("", "True")
        marks = {"addOnConditions": set[tuple[str, str]](), "removeOnConditions": set[tuple[str, str]]()}
        for spec in wanting.values():
            for when, taints in marks.items():
                if any(_status(seen, condition) in condition["statusValues"] for condition in spec[when]):
                    taints.update((taint["key"], taint["effect"]) for taint in spec["taints"])
        due = {mark for mark in marks["addOnConditions"] if mark[1] != "NoExecute" or not is_held}
        if due - seen.taints.keys():
            yield f"rest: {name} is {seen.status} without the taints {due - seen.taints.keys()}"
        if over := (marks["removeOnConditions"] - marks["addOnConditions"]) & seen.taints.keys():
            yield f"rest: {name} is {seen.status} and still has the taints {over}"


def _status(seen: ClusterState, matched: dict[str, Any]) -> str | None:
    """The status of the condition that a taint policy names."""
    kind = matched["conditionType"]
    return seen.status if kind == "Ready" else seen.conditions.get(kind)


def fleets(taken: list[verdicts.Taken]) -> Iterator[tuple[int, Fleet]]:
    """Yield the clusters after each accepted record of ``clusters``."""
    now: Fleet = {}
    for verdict in taken:
        if verdict.record.topic == topics.CLUSTERS:
            now = _moved(now, verdict)
            yield verdict.record.offset, now


def _moved(fleet: Fleet, taken: verdicts.Taken) -> Fleet:
    replace, at_ms, offset = msgspec.structs.replace, taken.at_ms, taken.record.offset
    match taken.data:
        case clusters.ClusterJoined(name=name, taints=taints):
            marks = {(taint.key, taint.effect): at_ms for taint in taints}
            return fleet | {name: replace(fleet.get(name, ClusterState()), taints=marks)}
        case clusters.ClusterLeaving(name=name):
            return fleet | {name: replace(fleet[name], is_leaving=True)}
        case clusters.ClusterLeft(name=name):
            return {other: seen for other, seen in fleet.items() if other != name}
        case clusters.ClusterTainted(name=name, taint=taint):
            marks = {(taint.key, taint.effect): at_ms} | fleet[name].taints
            return fleet | {name: replace(fleet[name], taints=marks)}
        case clusters.ClusterUntainted(name=name, key=key, effect=effect):
            marks = {
                mark: since
                for mark, since in fleet[name].taints.items()
                if mark[0] != key or effect not in ("", mark[1])
            }
            return fleet | {name: replace(fleet[name], taints=marks)}
        case clusters.ClusterHealthChanged(name=name) as report:
            return fleet | {name: _after_report(fleet[name], report, at_ms, offset)}
        case clusters.ClusterConditionsReported(name=name, conditions=reported):
            statuses = {condition.type: condition.status for condition in reported}
            return fleet | {name: replace(fleet[name], conditions=statuses)}
        case _:
            return fleet


def _after_report(
    seen: ClusterState, report: clusters.ClusterHealthChanged, at_ms: int, offset: int
) -> ClusterState:
    if report.silent and (not seen.status or seen.heard_ms > report.heard_ms):
        return seen
    status = "Unknown" if report.silent else str(report.ready)
    since = seen.since if status == seen.status else offset
    heard_ms = seen.heard_ms if report.silent else at_ms
    return msgspec.structs.replace(seen, status=status, since=since, heard_ms=heard_ms)
