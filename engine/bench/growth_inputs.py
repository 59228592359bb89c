"""Inputs of ``bench growth``: for each kind, the events that create the initial state, and the measured events."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from engine.bench import inputs
from engine.bench.inputs import raw
from events import clusters, policies, shapes, specs
from events.json_values import Json

Events = Sequence[shapes.Event]

_DEPLOYMENT: Final[Json] = {"apiVersion": "apps/v1", "kind": "Deployment"}
_POLICY: Final = "policy.karmada.io/v1alpha1"
_TEMPLATES: Final = 40
"""Number of Deployments that exist before the measured inputs, and of ConfigMaps in ``_dependencies``."""

_NEST: Final = 20
"""Nesting of each value in a deep manifest; whole manifests may have at most 64 levels."""

_ON_ALL: Final[Json] = {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}


class Case(NamedTuple):
    """One kind of input; both functions take the size and return events.

    The events of ``before`` are not measured. Each of the ``portions`` is decided before the next one is appended.
    """

    before: Callable[[int], Events]
    portions: Callable[[int], Iterator[Events]]


def joined(count: int = 3, taints: tuple[clusters.Taint, ...] = ()) -> Iterator[shapes.Event]:
    """Events of clusters that are ready and have enough capacity for everything."""
    for index in range(count):
        yield from inputs.joining(f"member{index}", {"zone": f"z{index}"}, taints)


def deployment(
    index: int,
    labels: Mapping[str, str] | None = None,
    volumes: Sequence[Json] = (),
) -> specs.TemplateApplied:
    """A Deployment in the namespace default."""
    pod: Json = {"containers": [{"name": "main", "image": "nginx"}], "volumes": list(volumes)}
    manifest: Json = {
        **_DEPLOYMENT,
        "metadata": {
            "name": f"web{index}",
            "namespace": "default",
            "labels": {"group": f"g{index}"} if labels is None else labels,
        },
        "spec": {"replicas": 2, "template": {"spec": pod}},
    }
    return specs.TemplateApplied(manifest=raw(manifest))


def config_map(index: int, data: Mapping[str, str] | None = None) -> specs.TemplateApplied:
    """A ConfigMap in the namespace default."""
    head: Json = {"name": f"config{index}", "namespace": "default"}
    manifest: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": head, "data": data or {}}
    return specs.TemplateApplied(manifest=raw(manifest))


def policy(
    name: str, selectors: Sequence[Json] = (), placement: Json | None = None, **spec: object
) -> shapes.Event:
    """A PropagationPolicy; without selectors it selects all Deployments."""
    fields: Json = {
        "resourceSelectors": list(selectors) or [_DEPLOYMENT],
        "placement": _ON_ALL if placement is None else placement,
        **spec,
    }
    return policies.PolicyApplied(manifest=_object("PropagationPolicy", name, fields))


def policy_deleted(name: str) -> shapes.Event:
    """Deletion of a PropagationPolicy."""
    ref = shapes.PolicyRef(kind="PropagationPolicy", name=name, namespace="default")
    return policies.PolicyDeleted(policy=ref)


def override(name: str, selectors: Sequence[Json], target: Json | None = None) -> shapes.Event:
    """An OverridePolicy that adds a label to selected workloads in the clusters that ``target`` selects."""
    rule: Json = {"overriders": {"labelsOverrider": [{"operator": "add", "value": {name: "x"}}]}}
    rules = [{**rule, "targetCluster": target} if target else rule]
    fields: Json = {"resourceSelectors": list(selectors), "overrideRules": rules}
    return policies.ConfigurationApplied(manifest=_object("OverridePolicy", name, fields))


def _object(kind: str, name: str, spec: Json, *, namespace: str = "default") -> msgspec.Raw:
    head: Json = {"name": name, **({"namespace": namespace} if namespace else {})}
    return raw({"apiVersion": _POLICY, "kind": kind, "metadata": head, "spec": spec})


def _named(index: int) -> Json:
    return {**_DEPLOYMENT, "name": f"web{index}"}


def _labelled(index: int) -> Json:
    return {**_DEPLOYMENT, "labelSelector": {"matchLabels": {"group": f"g{index}"}}}


def _world(count: int = 0) -> Events:
    del count
    return (*joined(), *map(deployment, range(_TEMPLATES)))


def _placed_world(count: int = 0) -> Events:
    return (*_world(count), policy("all"))


def _selectors(count: int) -> Iterator[Events]:
    """One policy with many selectors, created, changed and deleted."""
    selectors = [_named(index) if index % 2 else _labelled(index) for index in range(count)]
    yield [policy("many", selectors)]
    yield [policy("many", selectors[1:])]
    yield [policy_deleted("many")]


def _policies(count: int) -> Iterator[Events]:
    """Many policies, each for one workload by name or label, created one by one."""
    for index in range(count):
        yield [policy(f"p{index}", [_labelled(index)] if index % 2 else [_named(index)])]
    yield [policy_deleted(f"p{index}") for index in range(count)]


def _competing_policies(count: int) -> Iterator[Events]:
    """Many policies for one workload; once the claiming one is deleted, another takes over."""
    yield [policy(f"p{index}", [_named(0)]) for index in range(count)]
    yield [policy_deleted(f"p{index}") for index in range(count)]


def _overrides(count: int) -> Iterator[Events]:
    for index in range(count):
        yield [override(f"o{index}", [_labelled(index)], {"clusterNames": ["member1"]})]


def _override_policies(count: int) -> Iterator[Events]:
    """Many override policies for one workload."""
    yield [override(f"o{index}", [_named(0)], {"clusterNames": ["member1"]}) for index in range(count)]


def _clusters(count: int) -> Iterator[Events]:
    yield list(joined(count))


def _failing(count: int) -> Iterator[Events]:
    """Clusters that fail together; a ClusterTaintPolicy gives failed clusters a NoExecute taint."""
    yield _evict_all()
    yield list(_failures(count))


def _failing_one_by_one(count: int) -> Iterator[Events]:
    """Half of all clusters fail one by one; the consequences of each failure are decided before the next."""
    yield _evict_all()
    for failure in _failures(count // 2):
        yield [failure]


def _failures(count: int) -> Iterator[shapes.Event]:
    return (clusters.ClusterHealthChanged(name=f"member{index}", ready=False) for index in range(count))


def _evict_all() -> Events:
    condition: Json = {"conditionType": "Ready", "operator": "In"}
    fields: Json = {
        "addOnConditions": [{**condition, "statusValues": ["False"]}],
        "removeOnConditions": [{**condition, "statusValues": ["True"]}],
        "taints": [{"key": "not-ready", "effect": "NoExecute"}],
    }
    return [
        policies.ConfigurationApplied(manifest=_object("ClusterTaintPolicy", "sick", fields, namespace=""))
    ]


def _rebalancer(count: int) -> Iterator[Events]:
    manifest = inputs.rebalancer_manifest("all", (f"web{index}" for index in range(count)))
    yield [specs.RebalancerApplied(manifest=raw(manifest))]


def _dependencies(count: int) -> Iterator[Events]:
    """A workload with many dependencies, some of which exist."""
    volumes: list[Json] = [
        {"name": f"v{index}", "configMap": {"name": f"config{index}"}} for index in range(count)
    ]
    yield [policy("all", propagateDeps=True), *map(config_map, range(_TEMPLATES))]
    yield [deployment(0, volumes=volumes)]
    yield [deployment(0, volumes=volumes[1:])]


def _dependents(count: int) -> Iterator[Events]:
    """One object that many workloads depend on; the workloads are created one by one."""
    volume: Json = {"name": "v", "configMap": {"name": "config0"}}
    yield [policy("all", propagateDeps=True), config_map(0)]
    for index in range(count):
        yield [deployment(index, volumes=[volume])]


def _labels(count: int) -> Iterator[Events]:
    labels = {f"label{index}": "x" for index in range(count)}
    yield [
        deployment(0, labels),
        policy("p", [{**_DEPLOYMENT, "labelSelector": {"matchLabels": {"label1": "x"}}}]),
    ]
    yield [deployment(0, {**labels, "more": "x"})]


def _expressions(count: int) -> Iterator[Events]:
    """A label selector that has many conditions with two values each, and one condition with many values."""
    conditions: list[Json] = [
        {"key": f"none{index}", "operator": "NotIn", "values": ["a", "b"]} for index in range(count)
    ]
    conditions.append({"key": "group", "operator": "In", "values": [f"g{index}" for index in range(count)]})
    selector: Json = {**_DEPLOYMENT, "labelSelector": {"matchExpressions": conditions}}
    affinity: Json = {"labelSelector": {"matchExpressions": conditions[:-1]}}
    yield [policy("p", [selector], {"clusterAffinity": affinity})]
    yield [policy_deleted("p")]


def _tolerations(count: int) -> Iterator[Events]:
    """A cluster with many taints, and a policy that tolerates each of them."""
    taints = tuple(clusters.Taint(key=f"t{index}", effect="NoExecute") for index in range(count))
    tolerations = [{"key": f"t{index}", "operator": "Exists"} for index in range(count)]
    yield [policy("all", placement={**_ON_ALL, "clusterTolerations": tolerations})]
    yield list(joined(1, taints=taints))


def _affinities(count: int) -> Iterator[Events]:
    """A placement with many affinity groups, then one with many static weights."""
    terms = [{"affinityName": f"a{index}", "clusterNames": [f"none{index}"]} for index in range(count)]
    weights = [{"targetCluster": {"clusterNames": [f"none{index}"]}, "weight": 1} for index in range(count)]
    scheduling: Json = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"staticWeightList": weights},
    }
    yield [policy("all", placement={"clusterAffinities": terms})]
    yield [policy("all", placement={"replicaScheduling": scheduling})]


def _many_data_keys(count: int) -> Iterator[Events]:
    yield [policy("all", [{"apiVersion": "v1", "kind": "ConfigMap"}])]
    yield [config_map(0, {f"key{index}": "x" for index in range(count)})]


def _deeply_nested(count: int) -> Iterator[Events]:
    """Many nested values side by side in one manifest."""
    nest: object = "x"
    for _ in range(_NEST):
        nest = {"a": nest}
    manifest: Json = {
        **_DEPLOYMENT,
        "metadata": {"name": "web0", "namespace": "default"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [], "nests": [nest] * count}}},
    }
    yield [policy("all"), specs.TemplateApplied(manifest=raw(manifest))]


def _templates(count: int) -> Iterator[Events]:
    yield [deployment(index) for index in range(count)]


def _members(count: int) -> Events:
    return list(joined(count))


def _few_members(count: int) -> Events:
    del count
    return list(joined())


def _policy_for_all(count: int) -> Events:
    return (*_few_members(count), policy("all"))


def _placed(count: int) -> Events:
    return (*_policy_for_all(count), *map(deployment, range(count)))


CASES: Final[dict[str, Case]] = {
    "selectors of a policy": Case(_world, _selectors),
    "policies": Case(_world, _policies),
    "policies of one workload": Case(_world, _competing_policies),
    "overrides": Case(_placed_world, _overrides),
    "overrides of one workload": Case(_placed_world, _override_policies),
    "clusters": Case(_placed_world, _clusters),
    "clusters that fail": Case(_members, _failing),
    "clusters that fail one by one": Case(_members, _failing_one_by_one),
    "entries of a rebalancer": Case(_placed, _rebalancer),
    "dependencies of a workload": Case(_few_members, _dependencies),
    "workloads that need one object": Case(_few_members, _dependents),
    "labels of a workload": Case(_world, _labels),
    "conditions of a label selector": Case(_world, _expressions),
    "taints and tolerations": Case(_placed_world, _tolerations),
    "affinities and weights": Case(_placed_world, _affinities),
    "fields of a manifest": Case(_few_members, _many_data_keys),
    "nested values of a manifest": Case(_few_members, _deeply_nested),
    "workloads": Case(_policy_for_all, _templates),
}
"""The kinds of input that are measured, named by what grows."""
