"""The design's invariants 4, 5 and 6, and determinism, over random fleets and requests."""

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.kubeapi.values import selectors
from engine.objects import clusters, placements
from engine.placement import compiled, decisions, fleet, requests, schedule, triggers
from tests.placement import strategies


def succeeded(decision: decisions.Decision) -> bool:
    return decision.reason == decisions.SUCCESS


@pytest.mark.slow
@given(strategies.fleets(), strategies.scheduling_requests())
def test_4_replicas_add_up_or_each_cluster_has_all(known: fleet.Fleet, request: requests.Request) -> None:
    decision = schedule.schedule(request, known)
    assume(succeeded(decision) and request.is_workload and request.components <= 1)
    numbers = [replicas for _, replicas in decision.clusters]
    overflowing = any(term.overflow_affinities for term in request.placement.cluster_affinities)
    if compiled.strategy(request.placement.replica_scheduling) != compiled.Strategy.DUPLICATED:
        assert sum(numbers) == request.replicas
    elif not overflowing:
        assert set(numbers) <= {request.replicas}


@given(strategies.fleets(), strategies.scheduling_requests())
def test_5_no_new_replicas_in_forbidden_clusters(known: fleet.Fleet, request: requests.Request) -> None:
    decision = schedule.schedule(request, known)
    assume(decision.changed)
    before = dict(request.current)
    for name, _ in decision.clusters:
        cluster = known.get(name)
        assert cluster is not None
        assert cluster.metadata.deletion_timestamp is None
        assert name not in request.evicting
        assert _selected(request, decision, cluster)
        assert name in before or (_tolerated(request, cluster) and strategies.DEPLOYMENTS in _apis(cluster))


def _apis(cluster: clusters.ClusterManifest) -> tuple[clusters.ApiEnablement, ...]:
    return cluster.status.api_enablements


def _tolerated(request: requests.Request, cluster: clusters.ClusterManifest) -> bool:
    return all(
        taint.effect == "PreferNoSchedule"
        or any(
            toleration.tolerates(taint.key, taint.value, taint.effect)
            for toleration in request.placement.cluster_tolerations
        )
        for taint in cluster.spec.taints
    )


def _selected(
    request: requests.Request, decision: decisions.Decision, cluster: clusters.ClusterManifest
) -> bool:
    """Whether the affinity selects one cluster, computed without masks."""
    placement = request.placement
    terms = [term for term in placement.cluster_affinities if term.affinity_name == decision.affinity_name]
    if not terms:
        return placement.cluster_affinity is None or _means(placement.cluster_affinity, cluster)
    overflow = terms[0].overflow_affinities if request.is_workload else ()
    return any(_means(affinity, cluster) for affinity in (terms[0], *overflow))


def _means(affinity: placements.ClusterAffinity, cluster: clusters.ClusterManifest) -> bool:
    name = cluster.metadata.name
    region = (cluster.spec.region,) if cluster.spec.region else ()
    fields = affinity.field_selector or selectors.FieldSelector()
    return (
        name not in affinity.exclude
        and (not affinity.cluster_names or name in affinity.cluster_names)
        and (affinity.label_selector is None or affinity.label_selector.matches(cluster.metadata.labels))
        and all(requirement.matches(region) for requirement in fields.match_expressions)
    )


@st.composite
def settled(draw: st.DrawFn) -> tuple[fleet.Fleet, requests.Request]:
    """A fleet and a binding with a decision on it; at least one cluster has capacity for all."""
    known = draw(strategies.fleets())
    known.put(strategies.with_large_capacity("home"))
    request = requests.Request(
        resource=requests.Resource(
            api_version="apps/v1", kind="Deployment", name="web", uid=draw(st.sampled_from(["", "a", "b"]))
        ),
        placement=placements.Placement(replica_scheduling=draw(strategies.divided_by_capacity())),
        replicas=draw(st.integers(1, 60)),
        requests=draw(st.sampled_from([None, (), (("cpu", 100),), (("cpu", 250), ("memory", 100 << 20))])),
    )
    first = schedule.schedule(request, known)
    assert succeeded(first)
    return known, msgspec.structs.replace(request, current=first.clusters)


@given(settled(), st.integers(0, 100))
def test_6_steady_scale_up_removes_nothing_and_scale_down_adds_nothing(
    scene: tuple[fleet.Fleet, requests.Request], replicas: int
) -> None:
    known, request = scene
    before = dict(request.current)
    decision = schedule.schedule(msgspec.structs.replace(request, replicas=replicas), known)
    assume(succeeded(decision))
    after = dict(decision.clusters)
    if replicas >= request.replicas:
        assert all(after.get(name, 0) >= replicas_before for name, replicas_before in before.items())
    else:
        assert all(before.get(name, 0) >= replicas_after for name, replicas_after in after.items())


@given(settled(), strategies.summaries())
def test_6_only_a_trigger_moves_a_settled_binding(
    scene: tuple[fleet.Fleet, requests.Request], summary: clusters.ResourceSummary
) -> None:
    known, request = scene
    for name in known.names():
        known.report(name, summary)
    why = triggers.trigger(request, request.placement, known)
    decision = schedule.schedule(msgspec.structs.replace(request, trigger=why), known)
    assert why == triggers.NONE
    assert not decision.changed
    assert decision.clusters == request.current


@given(strategies.fleets(), strategies.scheduling_requests())
def test_equal_requests_have_equal_decisions(known: fleet.Fleet, request: requests.Request) -> None:
    other = fleet.Fleet()
    for name in reversed(known.names()):
        cluster = known.get(name)
        assert cluster is not None
        other.put(cluster)
    assert _comparable(schedule.schedule(request, known)) == _comparable(schedule.schedule(request, other))


def _comparable(decision: decisions.Decision) -> tuple[object, ...]:
    return (
        decision.clusters,
        decision.affinity_name,
        decision.reason,
        decision.message,
        decision.retry,
        dict(decision.excluded),
        decision.available,
    )


@given(strategies.fleets(), strategies.scheduling_requests())
def test_decisions_contain_no_numpy_numbers(known: fleet.Fleet, request: requests.Request) -> None:
    decision = schedule.schedule(request, known, explain=True)
    names, numbers = decision.columns
    assert tuple(zip(names, numbers, strict=True)) == decision.clusters
    reported_numbers = (
        [*numbers]
        + [replicas for _, replicas in decision.clusters]
        + [
            *decision.available.values(),
            *decision.excluded.values(),
        ]
    )
    assert all(type(number) is int for number in reported_numbers)
    assert decision.explanation is not None
    assert strategies.encoded(decision.explanation)


@given(strategies.fleets(), strategies.scheduling_requests())
def test_explanation_matches_the_decision(known: fleet.Fleet, request: requests.Request) -> None:
    decision = schedule.schedule(request, known, explain=True)
    assert decision.explanation is not None
    last = decision.explanation.groups[-1]
    assert [cluster.name for cluster in last.clusters] == list(known.names())
    if not succeeded(decision):
        assert all(group.error for group in decision.explanation.groups)
        return
    explained = {cluster.name: cluster.replicas for cluster in last.clusters if cluster.replicas}
    assert explained == {name: replicas for name, replicas in decision.clusters if replicas}
    assert {name for name, _ in decision.clusters} <= {
        cluster.name for cluster in last.clusters if cluster.selected
    }
    out = sum(1 for cluster in last.clusters if cluster.failed and not cluster.terminating)
    assert out == sum(decision.excluded.values())
