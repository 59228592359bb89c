"""Remedies: where more capacity would place the replicas that a prediction leaves unplaced."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from engine.kubeapi.values import quantity
from engine.plans import summaries
from engine.plans.predictions import WorkloadChange


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
