"""Pod priority and preemption inside a member, as in a cluster's own scheduler.

A pod's priority is the value of its PriorityClass, which may be built in; pods without a class have the default class,
or 0. A replica without capacity preempts replicas of lower priority, lowest and youngest first, if that frees enough,
unless its class says Never. Preempted replicas wait for capacity. Replicas whose class does not exist are not created
and wait too.
"""

from typing import Final

from msgspec import Struct

from engine.simulation import capacity, quotas, replicas
from engine.simulation.state import MemberState, Workload
from engine.works.amounts import Amounts
from engine.works.templates import Rank

_BUILT_IN: Final = {
    "system-cluster-critical": Rank(2_000_000_000),
    "system-node-critical": Rank(2_000_001_000),
}
_NONE: Final = Rank(0)


class _Victim(Struct, frozen=True):
    """A workload whose replicas may be preempted; ``value`` is its priority."""

    value: int
    workload: Workload


def is_used(state: MemberState) -> bool:
    """Whether any priority is in use; otherwise admission skips ranking."""
    return bool(state.ranks) or state.is_ranked


def rank_of(state: MemberState, workload: Workload) -> Rank | None:
    """Return the rank of a workload's replicas; None if their class does not exist."""
    name = workload.template.priority_class
    if name:
        return _BUILT_IN.get(name) or state.ranks.get(name)
    defaults = [rank for rank in state.ranks.values() if rank.is_default]
    # Of several defaults Kubernetes takes the lowest.
    return min(defaults, key=lambda rank: rank.value, default=_NONE)


def by_priority(state: MemberState, keys: list[str]) -> list[str]:
    """Sort workload keys by priority, highest first; the sort is stable."""

    def sort_key(key: str) -> int:
        workload = state.workloads.get(key)
        rank = None if workload is None else rank_of(state, workload)
        return -(rank or _NONE).value

    return sorted(keys, key=sort_key)


def preempt_pods(state: MemberState, workload: Workload, rank: Rank, at_ms: int) -> int:
    """Preempt replicas of lower priority for a workload; return how many of its pending replicas fit afterwards."""
    amounts = workload.template.amounts
    scarce = set(capacity.scarce(state.capacity, amounts, workload.pending))
    victims = [
        victim
        for victim in _victims(state, rank)
        if any(resource in scarce for resource, _ in victim.workload.template.amounts)
    ]
    fitting_count = _replicas_without(state, victims, amounts, workload.pending)
    for victim in victims:
        while (
            victim.workload.cohorts
            and capacity.replicas_that_fit(state.capacity, amounts, fitting_count) < fitting_count
        ):
            _displace(state, victim.workload, at_ms)
    return capacity.replicas_that_fit(state.capacity, amounts, fitting_count)


def _victims(state: MemberState, rank: Rank) -> list[_Victim]:
    victims = [
        _Victim(other_rank.value, other)
        for other in state.workloads.values()
        if other.cohorts and (other_rank := rank_of(state, other) or _NONE).value < rank.value
    ]
    return sorted(
        victims, key=lambda victim: (victim.value, -victim.workload.created_ms, victim.workload.key)
    )


def _replicas_without(state: MemberState, victims: list[_Victim], amounts: Amounts, count: int) -> int:
    """Return how many of ``count`` replicas would fit if all replicas of the victims were removed."""
    sums = capacity.Capacity(
        state.capacity.allocatable, dict(state.capacity.running), dict(state.capacity.starting)
    )
    for victim in victims:
        for cohort in victim.workload.cohorts:
            used = sums.running if cohort.running else sums.starting
            capacity.add(used, victim.workload.template.amounts, -cohort.count)
    return capacity.replicas_that_fit(sums, amounts, count)


def _displace(state: MemberState, workload: Workload, at_ms: int) -> None:
    """Evict the youngest admitted replica of a workload; its replacement is pending."""
    replicas.drop_at(state, workload, workload.admitted - 1)
    capacity.add(state.capacity.pending, workload.template.amounts, 1)
    quotas.count(state, workload.ref.namespace, workload.template, 1)
    workload.pending += 1
    workload.pending_since_ms = at_ms
    state.waiting[workload.key] = None
    state.dirty[workload.key] = None
