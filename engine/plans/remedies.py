"""Remedies: where more capacity would place the replicas that a prediction leaves unplaced.

The clusters are computed by ``placement.missing_capacity``, as for preemption.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct, structs

from engine.deciders import scheduling
from engine.deciders.facts import Facts
from engine.deciders.shard_fold import ShardFold
from engine.kubeapi.values import quantity
from engine.placement import missing_capacity
from engine.plans import summaries
from engine.plans.predictions import WorkloadChange

_WORKLOADS_MAX: Final = 1_000
"""Maximum number of workloads whose clusters are searched."""

_CLUSTERS_MAX: Final = 100
"""Maximum number of clusters named for a workload."""


class Remedy(Struct, frozen=True, rename="camel"):
    """More ``capacity`` in a cluster, as Kubernetes quantities, which would place this many missing replicas."""

    cluster: str
    replicas: int
    capacity: dict[str, str]

    @property
    def text(self) -> str:
        """The remedy as a phrase."""
        capacity = " and ".join(f"{name} {amount}" for name, amount in self.capacity.items())
        return f"{self.cluster} needs {capacity or 'capacity'} more for {summaries.count(self.replicas, 'replica')}"


def located(
    changes: Iterable[WorkloadChange], folds: Sequence[ShardFold], facts: Facts, failed: Collection[str]
) -> list[WorkloadChange]:
    """Return changes with the working clusters in which more capacity would place the missing replicas."""
    result = list(changes)
    for index in [index for index, each in enumerate(result) if each.missing][:_WORKLOADS_MAX]:
        change = result[index]
        fold = next((each for each in folds if change.key in each.state.bindings), None)
        if fold is not None:
            names = _clusters(fold, change.key, facts)
            helpful = [name for name in names if name not in failed]
            result[index] = structs.replace(change, needed_in=helpful[:_CLUSTERS_MAX])
    return result


def cheapest(changes: Iterable[WorkloadChange]) -> list[Remedy]:
    """Return in which clusters how much capacity places the missing replicas: as few clusters as a greedy choice finds.

    Workloads that no other cluster may run are left out.
    """
    waiting = [each for each in changes if each.missing and each.needed_in]
    remedies: list[Remedy] = []
    while waiting:
        counts: dict[str, int] = {}
        for each in waiting:
            for name in each.needed_in:
                counts[name] = counts.get(name, 0) + each.missing
        best = min(counts, key=lambda name: (-counts[name], name))
        placed = [each for each in waiting if best in each.needed_in]
        remedies.append(Remedy(best, counts[best], total([each.missing_requests for each in placed])))
        waiting = [each for each in waiting if best not in each.needed_in]
    return remedies


def total(requests: Sequence[dict[str, str]]) -> dict[str, str]:
    """Return the sums of requests, as Kubernetes quantities."""
    sums: dict[str, int] = {}
    for each in requests:
        for name, text in each.items():
            sums[name] = sums.get(name, 0) + quantity.nano_units(text)
    return {name: quantity.of_nano(name, amount) for name, amount in sorted(sums.items())}


def _clusters(fold: ShardFold, key: str, facts: Facts) -> tuple[str, ...]:
    """Return the clusters in which more capacity helps a binding; none if something else than capacity is missing."""
    binding = fold.state.bindings[key]
    if binding.declared is None or binding.claim is None:
        return ()
    request = scheduling.request_of(
        binding, binding.declared, binding.claim, facts, fold.placements, fold.state
    )
    shortage = missing_capacity.Shortage(request, facts.fleet)
    return shortage.clusters if shortage.exists else ()
