"""Evictions against Karmada's recorded answers: one case per feature."""

from collections.abc import Callable
from typing import Final

import msgspec
import pytest

from engine.deciders import eviction_rules
from engine.domain.bindings import Targets, evict
from engine.objects import clusters, placements
from events import times
from events.decisions import EvictionStarted
from tests import vectors

_GROUP: Final = "eviction-all"
_NOW_MS: Final = times.from_text("2026-01-01T00:00:00Z")
_SECOND_MS: Final = 1000


class _Taint(msgspec.Struct, rename="camel"):
    key: str
    effect: str
    value: str = ""
    added_seconds_ago: int | None = None

    def decoded(self) -> clusters.Taint:
        at = self.added_seconds_ago
        added = None if at is None else times.to_seconds_text(_NOW_MS - at * _SECOND_MS)
        return clusters.Taint(key=self.key, value=self.value, effect=self.effect, time_added=added)


class _Task(msgspec.Struct, rename="camel"):
    from_cluster: str
    created_seconds_ago: int | None = None
    grace_period_seconds: int | None = None
    suppress_deletion: bool | None = None
    purge_mode: str = ""

    def decoded(self) -> EvictionStarted:
        return EvictionStarted(
            key="",
            cluster=self.from_cluster,
            reason="",
            producer="",
            purge_mode=self.purge_mode,
            created_ms=_NOW_MS - (self.created_seconds_ago or 0) * _SECOND_MS,
            grace_period_seconds=self.grace_period_seconds,
            suppress_deletion=self.suppress_deletion,
        )


class _Target(msgspec.Struct, frozen=True):
    name: str
    replicas: int = 0


class _Evict(msgspec.Struct, rename="camel"):
    cluster: str
    taints: list[_Taint]
    tolerations: list[placements.Toleration]
    clusters: list[_Target]
    tasks: list[_Task] = []
    no_applied_placement: bool = False
    eviction_disabled: bool = False


class _Assess(msgspec.Struct, rename="camel"):
    tasks: list[_Task]
    clusters: list[_Target]
    health: dict[str, str]
    scheduled: bool
    timeout_seconds: int


class _Answer(msgspec.Struct, rename="camel", frozen=True):
    evict: bool
    tolerate_seconds: int
    error: bool
    clusters: tuple[_Target, ...]
    tasks: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    new_task_replicas: int = 0


def _targets(targets: list[_Target]) -> Targets:
    return tuple((target.name, target.replicas) for target in targets)


def _evict(raw: msgspec.Raw) -> _Answer:
    """Karmada returns -1 seconds for never, and an error if no toleration time is stated."""
    case = msgspec.json.decode(raw, type=_Evict)
    old, tasks = _targets(case.clusters), tuple(task.decoded() for task in case.tasks)
    deadline_ms = None
    if not (case.no_applied_placement or case.eviction_disabled):
        deadline_ms = eviction_rules.deadline_ms([taint.decoded() for taint in case.taints], case.tolerations)
    is_due = deadline_ms is not None and deadline_ms <= _NOW_MS
    new, left = old, tasks
    if is_due:
        running = dict(old).get(case.cluster, 0)
        task = msgspec.structs.replace(_Task(case.cluster).decoded(), replicas=running)
        new, left = evict(old, tasks, task)
    return _Answer(
        evict=is_due,
        tolerate_seconds=-1 if deadline_ms is None else max(deadline_ms - _NOW_MS, 0) // _SECOND_MS,
        error=case.no_applied_placement,
        clusters=tuple(_Target(name, replicas) for name, replicas in new),
        tasks=tuple(task.cluster for task in left),
        new_task_replicas=sum(task.replicas for task in left),
    )


def _assess(raw: msgspec.Raw) -> _Answer:
    case = msgspec.json.decode(raw, type=_Assess)
    # Karmada only sets the time of a task without one; an ``EvictionStarted`` has a time from the beginning.
    tasks = [task.decoded() for task in case.tasks if task.created_seconds_ago is not None]
    assessed = eviction_rules.assess(
        tasks,
        _targets(case.clusters),
        {name for name, health in case.health.items() if health == "Healthy"},
        is_scheduled=case.scheduled,
        now_ms=_NOW_MS,
        grace_period_ms=case.timeout_seconds * _SECOND_MS,
    )
    dropped = tuple(ended.task.cluster for ended in assessed.ended)
    return _Answer(
        evict=False,
        tolerate_seconds=0,
        error=False,
        clusters=tuple(case.clusters),
        tasks=tuple(task.from_cluster for task in case.tasks if task.from_cluster not in dropped),
        dropped=dropped,
    )


_ANSWERS: Final[dict[str, Callable[[msgspec.Raw], _Answer]]] = {
    "eviction-evict": _evict,
    "eviction-assess": _assess,
}
_CASES: Final = vectors.by_feature(vectors.load(_GROUP))


@pytest.mark.parametrize("cases", _CASES.values(), ids=_CASES)
def test_evictions_equal_the_recorded_answers(cases: list[vectors.Vector]) -> None:
    vectors.assert_accepted(cases, lambda vector: _ANSWERS[vector.feature](vector.input))
