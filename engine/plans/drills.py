"""Failure drills: the domains that may fail as a whole, the predicted effect of such a failure, and remedies. Pure."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from engine.kubeapi.values import quantity
from engine.plans import summaries
from engine.plans.predictions import Prediction, WorkloadChange
from engine.plans.questions import Failure
from events.json_values import as_list
from events.kube_objects import KubeObject

Domain = Literal["cluster", "zone", "region", "provider"]
ALL: Final[tuple[Domain, ...]] = ("cluster", "zone", "region", "provider")
Place = tuple[Domain, str]
"""A kind of failure domain, and the name of the cluster, zone, region or provider."""


class Outage(Struct, frozen=True):
    """A failure of all clusters of a domain."""

    domain: Domain
    name: str
    clusters: tuple[str, ...]

    @property
    def failures(self) -> tuple[Failure, ...]:
        return tuple(Failure(member=name) for name in self.clusters)


class Remedy(Struct, frozen=True, rename="camel"):
    """More ``capacity`` in a cluster, as Kubernetes quantities, and the number of missing replicas it would place."""

    cluster: str
    replicas: int
    capacity: dict[str, str]

    @property
    def text(self) -> str:
        """The remedy as a phrase."""
        capacity = " and ".join(f"{name} {amount}" for name, amount in self.capacity.items())
        return f"{self.cluster} needs {capacity or 'capacity'} more for {summaries.count(self.replicas, 'replica')}"


class Result(Struct, frozen=True, rename="camel"):
    """The predicted effect of an outage.

    ``missing`` replicas are in no working cluster at the end, and need ``needed`` more capacity in clusters that their
    policies allow; ``remedies`` say where. ``recovered_ms`` is the virtual time until the engine came to rest; None if
    replicas are missing.
    """

    outage: Outage
    moved: int
    missing: int
    needed: dict[str, str]
    recovered_ms: int | None
    suffering: list[WorkloadChange]
    assumptions: list[str]
    remedies: list[Remedy] = []


class Latest(Struct):
    """The results of the newest drill, the log number at which it started, and when it ended.

    ``ended_ms`` is in milliseconds since 1970; 0 before the first drill.
    """

    results: list[Result] = []
    ended_ms: int = 0
    number: int = 0

    def take(self, result: Result, number: int, ended_ms: int) -> None:
        """Add a result; one that started at another log ``number`` begins a new drill."""
        kept = self.results if number == self.number else []
        domain = result.outage.domain, result.outage.name
        self.results = [*(each for each in kept if (each.outage.domain, each.outage.name) != domain), result]
        self.number, self.ended_ms = number, ended_ms


def places(clusters: Iterable[KubeObject]) -> dict[Place, list[str]]:
    """Return the names of the clusters in each domain, from Cluster objects; a cluster may be in several zones."""
    found: dict[Place, list[str]] = {}
    for cluster in clusters:
        name, spec = cluster.name, cluster.object_at("spec")
        domains: dict[Domain, list[object]] = {
            "cluster": [name],
            "zone": as_list(spec.get("zones")) or [spec.get("zone")],
            "region": [spec.get("region")],
            "provider": [spec.get("provider")],
        }
        for domain in ALL:
            for place in filter(None, domains[domain]):
                found.setdefault((domain, str(place)), []).append(name)
    return found


def outages(clusters: Iterable[KubeObject], by: Collection[Domain] = ALL) -> list[Outage]:
    """Return the outages of these domains; one with the same clusters as an earlier one is left out."""
    found: dict[tuple[str, ...], Outage] = {}
    chosen = [(place, names) for place, names in places(clusters).items() if place[0] in by]
    for (domain, name), names in sorted(chosen, key=lambda item: (ALL.index(item[0][0]), item[0][1])):
        key = tuple(sorted(names))
        found.setdefault(key, Outage(domain, name, key))
    return list(found.values())


def result(outage: Outage, prediction: Prediction) -> Result:
    """Return the result of an outage from its prediction."""
    suffering = [each for each in prediction.changed if each.missing or each.ready_min < each.ready_before]
    missing = sum(each.missing for each in suffering)
    return Result(
        outage=outage,
        moved=len(prediction.moved),
        missing=missing,
        needed=total([each.missing_requests for each in suffering]),
        recovered_ms=None if missing else prediction.settled_ms,
        suffering=sorted(suffering, key=lambda each: (-each.missing, each.ready_min - each.ready_before)),
        assumptions=prediction.assumptions,
        remedies=cheapest_remedies(suffering),
    )


def cheapest_remedies(changes: Iterable[WorkloadChange]) -> list[Remedy]:
    """Return the capacity that would place the missing replicas, in few clusters, by a greedy choice.

    Workloads that more capacity would not place are left out.
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
