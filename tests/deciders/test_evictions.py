"""Eviction rules: deadlines under NoExecute taints, and the end of graceful evictions."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from engine.deciders import eviction_rules
from engine.domain.bindings import evict
from engine.objects import clusters, placements
from events import times
from events.decisions import EvictionStarted
from tests.deciders import strategies
from tests.deciders.strategies import NOW_MS

_NEVER_MS = 2**63


def _key(deadline_ms: int | None) -> int:
    return _NEVER_MS if deadline_ms is None else deadline_ms


def _task(cluster: str, **fields: int | bool) -> EvictionStarted:
    task = EvictionStarted(
        key="default/web-deployment",
        cluster=cluster,
        reason="",
        producer="",
        purge_mode="Gracefully",
        created_ms=NOW_MS,
        replicas=1,
    )
    return msgspec.structs.replace(task, **fields)


def _assess(task: EvictionStarted, at_ms: int, *, is_scheduled: bool = False) -> eviction_rules.Assessment:
    return eviction_rules.assess(
        [task], (), set(), is_scheduled=is_scheduled, now_ms=at_ms, grace_period_ms=600_000
    )


@given(strategies.taint_lists(), strategies.taint_lists(), strategies.toleration_lists())
def test_another_taint_never_extends_the_deadline(
    taints: list[clusters.Taint], more: list[clusters.Taint], tolerations: list[placements.Toleration]
) -> None:
    alone = eviction_rules.deadline_ms(taints, tolerations)
    assert _key(eviction_rules.deadline_ms([*taints, *more], tolerations)) <= _key(alone)


@given(strategies.taint_lists(), strategies.toleration_lists(), strategies.toleration_lists())
def test_another_toleration_at_the_end_never_shortens_the_deadline(
    taints: list[clusters.Taint],
    tolerations: list[placements.Toleration],
    more: list[placements.Toleration],
) -> None:
    alone = eviction_rules.deadline_ms(taints, tolerations)
    assert _key(eviction_rules.deadline_ms(taints, [*tolerations, *more])) >= _key(alone)


@given(strategies.taint_lists(), strategies.toleration_lists(), st.integers(0, 10**9))
def test_later_taint_moves_the_deadline_by_the_same_time(
    taints: list[clusters.Taint], tolerations: list[placements.Toleration], later_ms: int
) -> None:
    def shifted(taint: clusters.Taint) -> clusters.Taint:
        if taint.time_added is None:
            return taint
        text = times.to_text(times.from_text(taint.time_added) + later_ms)
        return msgspec.structs.replace(taint, time_added=text)

    deadline_ms = eviction_rules.deadline_ms(taints, tolerations)
    moved = deadline_ms + later_ms if deadline_ms else deadline_ms
    assert eviction_rules.deadline_ms([shifted(taint) for taint in taints], tolerations) == moved


def test_first_matching_toleration_applies_to_every_taint_that_it_matches() -> None:
    early, late = (
        clusters.Taint(key="maint", value=value, effect="NoExecute", time_added=times.to_text(at_ms))
        for value, at_ms in (("a", NOW_MS), ("b", NOW_MS + 5_000))
    )
    exact = placements.Toleration(key="maint", value="a", toleration_seconds=60)
    every = placements.Toleration(key="maint", operator="Exists", toleration_seconds=10)
    assert eviction_rules.deadline_ms([early], [exact, every]) == NOW_MS + 60_000
    # The second taint also matches the general toleration, which limits the first taint too.
    assert eviction_rules.deadline_ms([early, late], [exact, every]) == NOW_MS + 10_000


def test_toleration_seconds_beyond_the_calendar_mean_never() -> None:
    taint = clusters.Taint(key="k", effect="NoExecute", time_added=times.to_text(NOW_MS))
    endless = placements.Toleration(operator="Exists", toleration_seconds=2**63 - 1)
    spent = placements.Toleration(operator="Exists", toleration_seconds=-(2**63))
    assert eviction_rules.deadline_ms([taint], [endless]) is None
    assert eviction_rules.deadline_ms([taint], [spent]) == eviction_rules.AT_ONCE_MS


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)), st.sampled_from("abcd"))
def test_eviction_is_idempotent(placed: dict[str, int], cluster: str) -> None:
    targets = tuple(sorted(placed.items()))
    task = msgspec.structs.replace(_task(cluster), replicas=placed.get(cluster, 0))
    once = evict(targets, (), task)
    assert evict(*once, task) == once
    assert (once == (targets, ())) == (cluster not in placed)
    assert sum(count for _, count in once[0]) + sum(task.replicas for task in once[1]) == sum(placed.values())


@given(st.integers(-10, 10_000), st.integers(0, 10_000_000))
def test_grace_period_ends_exactly_at_its_due_time(seconds: int, late_ms: int) -> None:
    task = _task("m1", grace_period_seconds=seconds)
    due_ms = NOW_MS + seconds * 1000 + 1
    assert _assess(task, due_ms - 1) == eviction_rules.Assessment((), due_ms)
    (ended,) = _assess(task, due_ms + late_ms).ended
    assert ended.reason == eviction_rules.EndReason.GRACE_PERIOD_OVER


def test_eviction_ends_when_all_replacements_are_healthy() -> None:
    task = _task("m1")
    for healthy, is_scheduled, reasons in (
        ({"m2", "m3"}, True, [eviction_rules.EndReason.REPLACEMENT_HEALTHY]),
        ({"m2"}, True, []),
        ({"m2", "m3"}, False, []),
    ):
        assessed = eviction_rules.assess(
            [task],
            (("m2", 1), ("m3", 1)),
            healthy,
            is_scheduled=is_scheduled,
            now_ms=NOW_MS,
            grace_period_ms=600_000,
        )
        assert [ended.reason for ended in assessed.ended] == reasons


def test_explicit_suppression_or_permission_outranks_the_rules() -> None:
    kept = _task("m1", suppress_deletion=True)
    assert _assess(kept, NOW_MS + 10**9, is_scheduled=True) == eviction_rules.Assessment((), None)
    (ended,) = _assess(_task("m1", suppress_deletion=False), NOW_MS).ended
    assert ended.reason == eviction_rules.EndReason.DELETION_ALLOWED
