"""Each violated rule is reported with its field."""

import msgspec
import pytest

from events import kube_objects
from events.validation import manifests
from tests.builders.manifests import manifest
from tests.objects.validity.examples import (
    DEPLOYMENT,
    INTERPRETER,
    POLICY,
    REBALANCER,
    TAINT_POLICY,
    changed,
    placed,
    refusal,
    toleration,
)


def _weight(weight: object) -> dict[str, object]:
    rule = {"targetCluster": {"clusterNames": ["member1"]}, "weight": weight}
    return {"replicaScheduling": {"weightPreference": {"staticWeightList": [rule]}}}


def _spread(*constraints: dict[str, object]) -> dict[str, object]:
    return {"spreadConstraints": list(constraints)}


NOTHING: dict[str, object] = {}
CLUSTER = {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}
BREACHES: list[tuple[dict[str, object], str]] = [
    (
        placed({"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "a"}]}),
        "spec.placement.clusterAffinities: can't stand together with clusterAffinity",
    ),
    (
        placed({"clusterAffinities": [{"affinityName": "a"}, {"affinityName": "a"}]}),
        "spec.placement.clusterAffinities[1].affinityName: 'a' stands twice",
    ),
    (placed({"clusterAffinities": [NOTHING]}), "clusterAffinities[0].affinityName: required"),
    (placed(_weight(-1)), "staticWeightList[0].weight: is -1; write a number from 1"),
    (placed(_weight(0)), "staticWeightList[0].weight: is 0"),
    (placed(_weight("1")), "staticWeightList[0].weight: is the text '1', not a whole number"),
    (placed(_weight(2**63)), "staticWeightList[0].weight: is 9223372036854775808"),
    (
        placed(_spread({"spreadByField": "region"})),
        "spec.placement.spreadConstraints: spreads by region, but not",
    ),
    (placed(_spread({"spreadByField": "zone"})), "spreads by zone, but not by cluster"),
    (placed(_spread({"spreadByField": "planet"})), "spreadByField: is 'planet'; write one of 'cluster'"),
    (
        placed(_spread({**CLUSTER, "minGroups": 3})),
        "spreadConstraints[0].maxGroups: is 2, less than minGroups",
    ),
    (placed(_spread({**CLUSTER, "minGroups": -1})), "spreadConstraints[0].minGroups: is -1"),
    (
        placed(_spread({**CLUSTER, "spreadByLabel": "a"})),
        "spreadByField and spreadByLabel can't stand together",
    ),
    (placed(_spread({"minGroups": 1})), "spreadConstraints[0].spreadByField: required"),
    (placed(toleration(key="a", operator="Near")), "clusterTolerations[0].operator: is 'Near'"),
    (placed(toleration(key="a", effect="NoRun")), "clusterTolerations[0].effect: is 'NoRun'"),
    (
        placed(toleration(key="a", operator="Exists", value="b")),
        "clusterTolerations[0].value: must be empty",
    ),
    (placed(toleration(value="b")), "clusterTolerations[0].operator: must be Exists where key is empty"),
    (placed(toleration(key="a", tolerationSeconds=5)), "clusterTolerations[0].effect: must be NoExecute"),
    (
        placed(
            {"clusterAffinity": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}}
        ),
        "matchExpressions[0].operator: is 'Like'",
    ),
    (
        placed(
            {"clusterAffinity": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}}
        ),
        "matchExpressions[0].values: is empty with the operator In",
    ),
    (
        placed(
            {
                "clusterAffinity": {
                    "fieldSelector": {
                        "matchExpressions": [{"key": "planet", "operator": "In", "values": ["x"]}]
                    }
                }
            }
        ),
        "fieldSelector.matchExpressions[0].key: is 'planet'; write one of 'provider', 'region', 'zone'",
    ),
    (
        placed({"clusterAffinity": {"clusterNames": "member1"}}),
        "clusterNames: is the text 'member1', not a list",
    ),
    (placed({"clusterAffinity": None}), "spec.placement.clusterAffinity: is null, not an object"),
    (
        placed({"replicaScheduling": {"replicaSchedulingType": "Halved"}}),
        "replicaSchedulingType: is 'Halved'",
    ),
    (changed(POLICY, "spec.resourceSelectors", []), "spec.resourceSelectors: has 0 items; give at least 1"),
    (changed(POLICY, "spec", {}), "spec.resourceSelectors: required"),
    (changed(POLICY, "spec", None), "spec: is null, not an object"),
    (
        changed(POLICY, "spec.resourceSelectors.0.kind", 3),
        "resourceSelectors[0].kind: is the number 3, not text",
    ),
    (changed(POLICY, "spec.priority", 2**31), "spec.priority: is 2147483648"),
    (changed(POLICY, "spec.priority", new=True), "spec.priority: is true or false, not a whole number"),
    (changed(POLICY, "spec.preemption", "Sometimes"), "spec.preemption: is 'Sometimes'"),
    (
        changed(
            changed(POLICY, "spec.preemption", "Always"),
            "spec.resourceSelectors.0",
            {"apiVersion": "apps/v1", "kind": "Deployment"},
        ),
        "spec.resourceSelectors[0].name: must name the resource where preemption is Always",
    ),
    (
        changed(
            POLICY, "spec.suspension", {"dispatching": True, "dispatchingOnClusters": {"clusterNames": ["a"]}}
        ),
        "spec.suspension: dispatching and dispatchingOnClusters.clusterNames can't stand together",
    ),
    (changed(POLICY, "metadata.namespace", ""), "metadata.namespace: required for a PropagationPolicy"),
    (
        changed(POLICY, "apiVersion", "policy.karmada.io/v9"),
        "kind: PropagationPolicy is known as policy.karmada.io/v1",
    ),
    (changed(POLICY, "kind", "SpreadPolicy"), "kind: this control plane has no SpreadPolicy"),
    (
        manifest("work.karmada.io/v1alpha2", "ResourceBinding", "a"),
        "kind: a ResourceBinding is made by the engine",
    ),
    (changed(REBALANCER, "spec.workloads", []), "spec.workloads: has 0 items"),
    (
        changed(REBALANCER, "spec.workloads.0", {"kind": "Deployment"}),
        "spec.workloads[0].apiVersion: required",
    ),
    (changed(REBALANCER, "spec.workloads.0.name", "a/b"), "spec.workloads[0].name: 'a/b' is not the name"),
    (changed(REBALANCER, "spec.ttlSecondsAfterFinished", "60"), "ttlSecondsAfterFinished: is the text '60'"),
    (changed(REBALANCER, "metadata.namespace", "default"), "metadata.namespace: a WorkloadRebalancer has no"),
    (changed(DEPLOYMENT, "spec.replicas", -1), "spec.replicas: expected a whole number >= 0"),
    (changed(DEPLOYMENT, "spec.replicas", 2**31), "spec.replicas: expected a whole number <= 2147483647"),
    (changed(DEPLOYMENT, "spec.replicas", "3"), "spec.replicas: expected a whole number, got text"),
    (
        changed(DEPLOYMENT, "spec.template.spec.containers.0.resources.limits.cpu", "lots"),
        "spec.template.spec.containers[0].resources.limits.cpu: 'lots' is not a quantity",
    ),
    (
        changed(DEPLOYMENT, "spec.template.spec.overhead", {"cpu": "-1"}),
        "spec.template.spec.overhead.cpu: '-1' is not",
    ),
    (changed(DEPLOYMENT, "metadata.labels", {"a b": "c"}), "metadata.labels.a b: is not a label's name"),
    (changed(DEPLOYMENT, "metadata.labels", {"a": "x" * 64}), "metadata.labels.a: 'xxxx"),
    (changed(DEPLOYMENT, "metadata.name", "Foo_Bar"), "metadata.name: 'Foo_Bar' is no DNS name"),
    (changed(DEPLOYMENT, "kind", "a/b"), "kind: 'a/b' is not a kind"),
    (changed(INTERPRETER, "spec.replicasPath", "spec[0]"), "spec.replicasPath: 'spec[0]' is not a path"),
    (changed(INTERPRETER, "spec.target", {}), "spec.target.apiVersion: required"),
    (changed(TAINT_POLICY, "spec.taints", 5), "spec.taints: is the number 5, not a list"),
    (changed(TAINT_POLICY, "spec.taints", []), "spec.taints: has 0 items"),
    (changed(TAINT_POLICY, "spec.taints.0.effect", "NoRun"), "spec.taints[0].effect: is 'NoRun'"),
    (
        changed(TAINT_POLICY, "spec.addOnConditions.0.operator", "Like"),
        "spec.addOnConditions[0].operator: is 'Like'",
    ),
    (
        changed(TAINT_POLICY, "spec.removeOnConditions", [{"operator": "In", "statusValues": ["True"]}]),
        "spec.removeOnConditions[0].conditionType: required",
    ),
    (
        changed(
            TAINT_POLICY,
            "spec.targetClusters.labelSelector",
            {"matchExpressions": [{"key": "a", "operator": "Like"}]},
        ),
        "spec.targetClusters.labelSelector.matchExpressions[0].operator",
    ),
]


@pytest.mark.parametrize(("value", "words"), BREACHES, ids=[words for _, words in BREACHES])
def test_each_violation_is_refused_with_its_field(value: dict[str, object], words: str) -> None:
    assert words in refusal(value)


def test_all_violations_are_reported_with_each_field_once() -> None:
    wrong = {
        "clusterAffinity": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
        "clusterAffinities": [NOTHING, {"affinityName": "a"}],
        **_spread({"spreadByField": "region", "minGroups": 3, "maxGroups": 2}),
        **_weight(-1),
    }
    raw = msgspec.Raw(msgspec.json.encode(placed(wrong)))

    assert [
        fault.field.removeprefix("spec.placement.")
        for fault in manifests.object_faults(kube_objects.read_head(raw), raw)
    ] == [
        "clusterAffinity.labelSelector.matchExpressions[0].operator",
        "clusterAffinities[0].affinityName",
        "replicaScheduling.weightPreference.staticWeightList[0].weight",
        "clusterAffinities",
        "spreadConstraints[0].maxGroups",
        "spreadConstraints",
    ]
