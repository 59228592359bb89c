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
DomainName = tuple[Domain, str]
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
    """More ``capacity`` in a cluster, as Kubernetes quantities, and the number of missing replicas that need it."""

    cluster: str
    replicas: int
    capacity: dict[str, str]

    @property
    def text(self) -> str:
        """The remedy in words: ``member2 needs 2 more cpu for 4 replicas``."""
        capacity = " and ".join(f"{amount} more {name}" for name, amount in self.capacity.items())
        return f"{self.cluster} needs {capacity or 'more capacity'} for {summaries.count(self.replicas, 'replica')}"


class Result(Struct, frozen=True, rename="camel"):
    """The predicted effect of an outage.

    ``missing`` replicas are in no working cluster at the end. ``needed`` is the capacity that they need; replicas that
    stay assigned to a failed cluster need none. ``remedies`` name clusters that could get this capacity and that the
    policies allow. ``recovered_ms`` is the virtual time until the engine was stable; None if replicas are missing.
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
        """Add a result.

        A result with a later log ``number`` begins a new drill; a result with an earlier one is ignored.
        """
        if number < self.number:
            return
        kept = self.results if number == self.number else []
        domain = result.outage.domain, result.outage.name
        self.results = [
            *(result for result in kept if (result.outage.domain, result.outage.name) != domain),
            result,
        ]
        self.number, self.ended_ms = number, ended_ms


def domain_names(clusters: Iterable[KubeObject]) -> dict[DomainName, list[str]]:
    """Return the names of the clusters in each domain, from Cluster objects; a cluster may be in several zones."""
    names_by_domain: dict[DomainName, list[str]] = {}
    for cluster in clusters:
        name, spec = cluster.name, cluster.object_at("spec")
        domains: dict[Domain, list[object]] = {
            "cluster": [name],
            "zone": as_list(spec.get("zones")) or [spec.get("zone")],
            "region": [spec.get("region")],
            "provider": [spec.get("provider")],
        }
        for domain in ALL:
            # A cluster may name a zone twice.
            for domain_name in dict.fromkeys(map(str, filter(None, domains[domain]))):
                names_by_domain.setdefault((domain, domain_name), []).append(name)
    return names_by_domain


def outages(clusters: Iterable[KubeObject], by: Collection[Domain] = ALL) -> list[Outage]:
    """Return the outages of domains of the kinds ``by``; of domains with equal clusters only the first has one."""
    outages_by_clusters: dict[tuple[str, ...], Outage] = {}
    chosen = [(domain, names) for domain, names in domain_names(clusters).items() if domain[0] in by]
    for (domain, name), names in sorted(chosen, key=lambda item: (ALL.index(item[0][0]), item[0][1])):
        key = tuple(sorted(names))
        outages_by_clusters.setdefault(key, Outage(domain, name, key))
    return list(outages_by_clusters.values())


def result(outage: Outage, prediction: Prediction) -> Result:
    """Return the result of an outage from its prediction."""
    suffering = [
        workload
        for workload in prediction.changed
        if workload.missing or workload.ready_min < workload.ready_before
    ]
    missing = sum(workload.missing for workload in suffering)
    return Result(
        outage=outage,
        moved=len(prediction.moved),
        missing=missing,
        needed=total([workload.missing_requests for workload in suffering]),
        recovered_ms=None if missing else prediction.settled_ms,
        suffering=sorted(
            suffering, key=lambda workload: (-workload.missing, workload.ready_min - workload.ready_before)
        ),
        assumptions=prediction.assumptions,
        remedies=cheapest_remedies(suffering),
    )


def cheapest_remedies(changes: Iterable[WorkloadChange]) -> list[Remedy]:
    """Return the capacity that would place the missing replicas; a greedy choice keeps the number of clusters small.

    Workloads for which more capacity does not help are ignored.
    """
    waiting = [change for change in changes if change.missing and change.needed_in]
    remedies: list[Remedy] = []
    while waiting:
        counts: dict[str, int] = {}
        for change in waiting:
            for name in change.needed_in:
                counts[name] = counts.get(name, 0) + change.missing
        best = min(counts, key=lambda name: (-counts[name], name))
        placed = [change for change in waiting if best in change.needed_in]
        remedies.append(Remedy(best, counts[best], total([change.missing_requests for change in placed])))
        waiting = [change for change in waiting if best not in change.needed_in]
    return remedies


def total(requests: Sequence[dict[str, str]]) -> dict[str, str]:
    """Return the sums of requests, as Kubernetes quantities."""
    return quantity.texts(quantity.totals(requests))
