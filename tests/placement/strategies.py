"""Fleets, placements and requests for property tests, written by hand so that most are feasible."""

import contextlib

import msgspec
from hypothesis import strategies as st

from engine.kubeapi.values import selectors
from engine.objects import clusters, placements
from engine.placement import fleet, requests

NAMES = [f"m{number}" for number in range(40)]
REGIONS = ["ber", "fra", "ams", ""]
TIERS = ["gold", "silver", "bronze"]
TAINTS = [
    clusters.Taint(key="edge", effect="NoSchedule"),
    clusters.Taint(key="gpu", value="only", effect="NoExecute"),
    clusters.Taint(key="slow", effect="PreferNoSchedule"),
]
NUMBERS = st.integers(0, 2**72)
DEPLOYMENTS = clusters.ApiEnablement(
    group_version="apps/v1", resources=(clusters.ApiResource(kind="Deployment"),)
)


def summaries() -> st.SearchStrategy[clusters.ResourceSummary]:
    return st.builds(
        summary, st.integers(0, 20_000), st.integers(0, 40_000), st.integers(0, 200), st.integers(0, 50)
    )


def summary(cpu: int, memory: int, pods: int, used: int) -> clusters.ResourceSummary:
    return clusters.ResourceSummary(
        allocatable={"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": str(pods)},
        allocated={"pods": str(used), "cpu": f"{used}m"},
    )


def manifest(name: str, number: int) -> clusters.ClusterManifest:
    """Return a cluster whose facts are the digits of a number: one draw per cluster keeps the tests fast."""
    digits: list[int] = []
    for base in (len(TIERS), len(REGIONS), 3, 4, 4, 6, 8, 20_000, 40_000, 200, 50):
        number, digit = divmod(number, base)
        digits.append(digit)
    tier, region, zone, taints, served, leaving, reported, cpu, memory, pods, used = digits
    return clusters.ClusterManifest(
        metadata=clusters.ClusterMetadata(
            name=name,
            labels={"tier": TIERS[tier]},
            deletion_timestamp="2026-01-01T00:00:00Z" if leaving == 1 else None,
        ),
        spec=clusters.ClusterSpec(
            provider="aws",
            region=REGIONS[region],
            zones=((), ("a",), ("a", "b"))[zone],
            taints=tuple(TAINTS[:taints]) if taints < len(TAINTS) else (),
        ),
        status=clusters.ClusterStatus(
            api_enablements=() if served == 1 else (DEPLOYMENTS,),
            resource_summary=None if reported == 1 else summary(cpu, memory, pods, used),
        ),
    )


def manifests() -> st.SearchStrategy[clusters.ClusterManifest]:
    return st.builds(manifest, st.sampled_from(NAMES), NUMBERS)


def fleets() -> st.SearchStrategy[fleet.Fleet]:
    """Fleets on both sides of the size at which division switches from plain Python to arrays."""
    count = st.integers(1, 8) | st.integers(25, len(NAMES))
    numbers = count.flatmap(lambda many: st.lists(NUMBERS, min_size=many, max_size=many))
    return numbers.map(lambda fleet_numbers: filled(list(map(manifest, NAMES, fleet_numbers))))


def changes() -> st.SearchStrategy[list[tuple[str, clusters.ClusterManifest]]]:
    """Sequences of cluster changes, for ``change``."""
    return st.lists(st.tuples(st.sampled_from(["put", "report", "remove"]), manifests()), max_size=12)


def change(known: fleet.Fleet, kind: str, cluster: clusters.ClusterManifest) -> None:
    """Apply a change to a fleet; a report of an unknown cluster is ignored."""
    match kind:
        case "put":
            known.put(cluster)
        case "report":
            with contextlib.suppress(KeyError):
                known.report(cluster.metadata.name, cluster.status.resource_summary)
        case "remove":
            known.remove(cluster.metadata.name)
        case _:
            raise ValueError(kind)


def with_large_capacity(name: str) -> clusters.ClusterManifest:
    """Return a cluster without taints and with capacity for all requests of the tests."""
    return clusters.ClusterManifest(
        metadata=clusters.ClusterMetadata(name=name),
        status=clusters.ClusterStatus(
            api_enablements=(DEPLOYMENTS,),
            resource_summary=clusters.ResourceSummary(
                allocatable={"cpu": "100", "memory": "100Gi", "pods": "400"}
            ),
        ),
    )


def filled(manifests: list[clusters.ClusterManifest]) -> fleet.Fleet:
    known = fleet.Fleet()
    for manifest in manifests:
        known.put(manifest)
    return known


def affinities() -> st.SearchStrategy[placements.ClusterAffinity]:
    regions = st.builds(
        _region_selector,
        st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
        st.lists(st.sampled_from(REGIONS[:-1]), max_size=2),
    )
    return st.builds(
        _affinity,
        st.none() | st.none() | st.sampled_from(TIERS),
        st.none() | st.none() | regions,
        st.just(list[str]()) | st.just(NAMES[2:6]) | st.lists(st.sampled_from(NAMES), max_size=30),
        st.lists(st.sampled_from(NAMES), max_size=3),
    )


def _region_selector(operator: str, values: list[str]) -> selectors.FieldSelector:
    requirement = selectors.Requirement(key="region", operator=operator, values=tuple(values))
    return selectors.FieldSelector(match_expressions=(requirement,))


def _affinity(
    tier: str | None, field: selectors.FieldSelector | None, names: list[str], excluded: list[str]
) -> placements.ClusterAffinity:
    return placements.ClusterAffinity(
        label_selector=None if tier is None else selectors.LabelSelector(match_labels={"tier": tier}),
        field_selector=field,
        cluster_names=tuple(names),
        exclude=tuple(excluded),
    )


def preferences() -> st.SearchStrategy[placements.ReplicaSchedulingStrategy | None]:
    rules = st.lists(st.builds(_rule, affinities(), st.integers(0, 9)), max_size=3)
    duplicated = st.just(placements.ReplicaSchedulingStrategy(replica_scheduling_type="Duplicated"))
    return st.none() | duplicated | st.builds(_weighted, st.none() | rules) | divided_by_capacity()


def _rule(affinity: placements.ClusterAffinity, weight: int) -> placements.StaticClusterWeight:
    return placements.StaticClusterWeight(target_cluster=affinity, weight=weight)


def _weighted(rules: list[placements.StaticClusterWeight] | None) -> placements.ReplicaSchedulingStrategy:
    return placements.ReplicaSchedulingStrategy(
        replica_scheduling_type="Divided",
        replica_division_preference="Weighted",
        weight_preference=None
        if rules is None
        else placements.ClusterPreferences(static_weight_list=tuple(rules)),
    )


def divided_by_capacity() -> st.SearchStrategy[placements.ReplicaSchedulingStrategy]:
    """The two strategies that depend on free capacity and on running replicas."""
    return st.sampled_from(
        [
            placements.ReplicaSchedulingStrategy(
                replica_scheduling_type="Divided", replica_division_preference="Aggregated"
            ),
            placements.ReplicaSchedulingStrategy(
                replica_scheduling_type="Divided",
                replica_division_preference="Weighted",
                weight_preference=placements.ClusterPreferences(dynamic_weight="AvailableReplicas"),
            ),
        ]
    )


def constraints() -> st.SearchStrategy[list[placements.SpreadConstraint]]:
    fields = st.sampled_from(["cluster", "region", "zone", "provider"])
    constraint = st.builds(_constraint, fields, st.integers(0, 3), st.integers(0, 6))
    several = st.lists(constraint, max_size=2, unique_by=lambda constraint: constraint.spread_by_field)
    unspread = st.just(list[placements.SpreadConstraint]())
    return unspread | unspread.map(list) | several


def _constraint(field: str, least: int, more: int) -> placements.SpreadConstraint:
    return placements.SpreadConstraint(spread_by_field=field, min_groups=least, max_groups=least + more)


def placements_of(
    preference: st.SearchStrategy[placements.ReplicaSchedulingStrategy | None],
) -> st.SearchStrategy[placements.Placement]:
    tolerations = st.lists(
        st.sampled_from(
            [placements.Toleration(key="edge", operator="Exists"), placements.Toleration(operator="Exists")]
        ),
        max_size=1,
    )
    anywhere = st.just(placements.ClusterAffinity())
    overflow = st.lists(affinities() | anywhere, max_size=2)
    groups = st.lists(st.tuples(affinities() | anywhere, overflow), max_size=3)
    return st.builds(
        _placement, st.none() | anywhere | affinities(), groups, tolerations, constraints(), preference
    )


def _placement(
    affinity: placements.ClusterAffinity | None,
    groups: list[tuple[placements.ClusterAffinity, list[placements.ClusterAffinity]]],
    tolerations: list[placements.Toleration],
    spread: list[placements.SpreadConstraint],
    preference: placements.ReplicaSchedulingStrategy | None,
) -> placements.Placement:
    terms = tuple(
        placements.ClusterAffinityTerm(
            affinity_name=f"g{number}",
            label_selector=term.label_selector,
            field_selector=term.field_selector,
            cluster_names=term.cluster_names,
            exclude=term.exclude,
            overflow_affinities=tuple(overflow),
        )
        for number, (term, overflow) in enumerate(groups)
    )
    return placements.Placement(
        cluster_affinity=None if terms else affinity,
        cluster_affinities=terms,
        cluster_tolerations=tuple(tolerations),
        spread_constraints=tuple(spread),
        replica_scheduling=preference,
    )


def current() -> st.SearchStrategy[list[tuple[str, int]]]:
    target = st.tuples(st.sampled_from(NAMES), st.integers(0, 40))
    return st.lists(target, max_size=8, unique_by=lambda pair: pair[0])


def scheduling_requests() -> st.SearchStrategy[requests.Request]:
    needs = st.none() | st.builds(_needs, st.integers(0, 900), st.integers(0, 900))
    return st.builds(
        requests.Request,
        resource=st.builds(resource, st.sampled_from(["", "a", "b"])),
        placement=placements_of(preferences()),
        replicas=st.integers(0, 30) | st.integers(0, 300),
        requests=needs,
        components=st.sampled_from([0, 0, 0, 0, 0, 1, 2]),
        current=current().map(tuple),
        evicting=st.frozensets(st.sampled_from(NAMES), max_size=2),
        observed_affinity=st.sampled_from(["", "g0", "g1", "gone"]),
        fresh=st.booleans(),
        empty_workload_propagation=st.sampled_from([False, False, True]),
        trigger=st.just("PlacementChanged"),
    )


def resource(uid: str) -> requests.Resource:
    return requests.Resource(api_version="apps/v1", kind="Deployment", name="web", uid=uid)


def _needs(cpu: int, memory: int) -> requests.Requests:
    return requests.parse_requests({"cpu": f"{cpu}m", "memory": f"{memory}Mi"})


def encoded(value: msgspec.Struct) -> bytes:
    return msgspec.json.encode(value, order="deterministic")
