"""Validity of known kinds: the documents' objects pass, and each violated rule is reported."""

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.values import quantity
from engine.objects import placements
from events import objects
from events.validation import manifests, names
from tests.builders.manifests import manifest, raw, rebalancer, selector, taint_policy

POLICY = manifest(
    "policy.karmada.io/v1alpha1",
    "PropagationPolicy",
    "nginx-propagation",
    "default",
    spec={"resourceSelectors": [selector("nginx")]},
)
REBALANCER = rebalancer("demo", selector("foo", namespace="default"))
DEPLOYMENT = manifest(
    "apps/v1",
    "Deployment",
    "foo",
    "default",
    metadata={"labels": {"app.kubernetes.io/name": "foo"}},
    spec={
        "replicas": 3,
        "template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "10m", "memory": "10Mi"}}}]}},
    },
)
INTERPRETER = manifest(
    "config.reballast.io/v1alpha1",
    "ReplicaInterpreter",
    "kafkas",
    spec={"target": {"apiVersion": "example.io/v1", "kind": "Kafka"}, "replicasPath": "spec.size"},
)
TAINT_POLICY = taint_policy("not-ready", "NoExecute", "False", on=("member1",))


def refusal(value: dict[str, object]) -> str:
    """Return the refusal of an object; empty if it is valid."""
    encoded = raw(value)
    try:
        manifests.check(objects.read(encoded), encoded)
    except objects.Refusal as found:
        return f"{found.field}: {found.reason}"
    return ""


def changed(value: dict[str, object], path: str, new: object) -> dict[str, object]:
    """Return a copy with another value at a path of names and indexes: ``spec.workloads.0.name``."""
    copied = copy.deepcopy(value)
    at: Any = copied
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        at = at[step] if isinstance(step, int) else at.setdefault(step, {})
    at[last] = new
    return copied


def placed(placement: object) -> dict[str, object]:
    return changed(POLICY, "spec.placement", placement)


LEGAL_PLACEMENTS: list[dict[str, object]] = [
    {},
    {"clusterAffinity": {"clusterNames": ["member1", "member2"]}},
    {"clusterAffinity": {"exclude": ["member1"]}},
    {"clusterAffinity": {"labelSelector": {"matchLabels": {"location": "us"}}}},
    {
        "clusterAffinity": {
            "labelSelector": {"matchExpressions": [{"key": "location", "operator": "In", "values": ["us"]}]},
            "fieldSelector": {
                "matchExpressions": [
                    {"key": "provider", "operator": "In", "values": ["huaweicloud"]},
                    {"key": "region", "operator": "NotIn", "values": ["cn-south-1"]},
                ]
            },
        }
    },
    {
        "clusterAffinities": [
            {"affinityName": "primary-clusters", "clusterNames": ["member1"]},
            {"affinityName": "backup-clusters", "clusterNames": ["member1", "member2"]},
        ]
    },
    {"clusterTolerations": [{"key": "dedicated", "value": "special-user", "effect": "NoSchedule"}]},
    {
        "clusterTolerations": [
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}
        ]
    },
    {"clusterTolerations": [{"operator": "Exists"}]},
    {
        "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
        "spreadConstraints": [
            {"spreadByField": "region", "maxGroups": 2, "minGroups": 2},
            {"spreadByField": "cluster", "maxGroups": 1, "minGroups": 1},
        ],
    },
    {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {
                "staticWeightList": [{"targetCluster": {"clusterNames": ["member1"]}, "weight": 1}]
            },
        }
    },
    {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"},
        }
    },
]


@pytest.mark.parametrize("placement", LEGAL_PLACEMENTS)
def test_placements_of_the_guides_are_valid_and_decoded(placement: dict[str, object]) -> None:
    assert refusal(placed(placement)) == ""
    assert msgspec.convert(placement, placements.Placement) is not None


@pytest.mark.parametrize("value", [POLICY, REBALANCER, DEPLOYMENT, INTERPRETER, TAINT_POLICY])
def test_whole_objects_are_valid(value: dict[str, object]) -> None:
    assert refusal(value) == ""


def _weight(weight: object) -> dict[str, object]:
    rule = {"targetCluster": {"clusterNames": ["member1"]}, "weight": weight}
    return {"replicaScheduling": {"weightPreference": {"staticWeightList": [rule]}}}


def _toleration(**fields: object) -> dict[str, object]:
    return {"clusterTolerations": [fields]}


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
    (placed(_toleration(key="a", operator="Near")), "clusterTolerations[0].operator: is 'Near'"),
    (placed(_toleration(key="a", effect="NoRun")), "clusterTolerations[0].effect: is 'NoRun'"),
    (
        placed(_toleration(key="a", operator="Exists", value="b")),
        "clusterTolerations[0].value: must be empty",
    ),
    (placed(_toleration(value="b")), "clusterTolerations[0].operator: must be Exists where key is empty"),
    (placed(_toleration(key="a", tolerationSeconds=5)), "clusterTolerations[0].effect: must be NoExecute"),
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


def test_negative_ttl_of_a_rebalancer_is_valid_as_in_the_reference() -> None:
    assert refusal(changed(REBALANCER, "spec.ttlSecondsAfterFinished", -1)) == ""


def test_role_name_may_contain_a_colon() -> None:
    role: dict[str, object] = manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "system:node")
    assert refusal(role) == ""


def test_all_violations_are_reported_with_each_field_once() -> None:
    wrong = {
        "clusterAffinity": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
        "clusterAffinities": [NOTHING, {"affinityName": "a"}],
        **_spread({"spreadByField": "region", "minGroups": 3, "maxGroups": 2}),
        **_weight(-1),
    }
    raw = msgspec.Raw(msgspec.json.encode(placed(wrong)))

    assert [
        fault.field.removeprefix("spec.placement.") for fault in manifests.examine(objects.read(raw), raw)
    ] == [
        "clusterAffinity.labelSelector.matchExpressions[0].operator",
        "clusterAffinities[0].affinityName",
        "replicaScheduling.weightPreference.staticWeightList[0].weight",
        "clusterAffinities",
        "spreadConstraints[0].maxGroups",
        "spreadConstraints",
    ]


def test_unknown_fields_are_valid_and_are_listed_for_the_write_api() -> None:
    value = changed(POLICY, "spec.placement", {"clusterAffinity": {"clusterName": ["member1"]}, "extra": 1})

    assert refusal(value) == ""
    assert manifests.unknown_fields(value) == [
        "spec.placement.clusterAffinity.clusterName",
        "spec.placement.extra",
    ]


def test_field_in_another_case_is_accepted_with_a_note_and_nulls_are_dropped() -> None:
    toleration = {"key": "dedicated", "value": "special-user", "Effect": "NoSchedule"}
    value = placed({"clusterTolerations": [toleration], "spreadConstraints": None})
    notes: list[str] = []

    meant = manifests.canonical_object(value, notes, prune=False)

    assert (
        meant["spec"]
        == placed(_toleration(key="dedicated", value="special-user", effect="NoSchedule"))["spec"]
    )
    assert notes == ['field "spec.placement.clusterTolerations[0].Effect" was read as "effect"']


FIELDS = """
    labelSelector matchLabels matchExpressions key operator values affinityName clusterAffinities
    overflowAffinities spreadByField minGroups maxGroups effect weightPreference staticWeightList targetCluster
    dispatchingOnClusters clusterNames
"""
NAMES = st.text(max_size=5) | st.sampled_from(FIELDS.split())
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.text(max_size=5)
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
PATHS = [
    "spec",
    "spec.placement",
    "spec.placement.clusterAffinity",
    "spec.placement.clusterAffinity.labelSelector",
    "spec.placement.clusterTolerations",
    "spec.placement.spreadConstraints",
    "spec.placement.replicaScheduling",
    "spec.resourceSelectors",
    "spec.suspension",
    "spec.workloads",
    "spec.target",
    "spec.taints",
    "spec.targetClusters",
    "spec.addOnConditions",
    "spec.replicas",
    "spec.template",
    "spec.template.spec.containers",
]


@given(
    st.sampled_from([POLICY, REBALANCER, DEPLOYMENT, INTERPRETER, TAINT_POLICY]),
    st.sampled_from(PATHS),
    ANYTHING,
)
def test_arbitrary_values_cause_faults_only(value: dict[str, object], path: str, new: object) -> None:
    try:
        raw = msgspec.Raw(msgspec.json.encode(changed(value, path, new)))
    except OverflowError:
        return  # JSON allows such numbers, but msgspec does not encode them
    for fault in manifests.examine(objects.read(raw), raw):
        assert fault.reason


QUANTITIES = st.from_regex(r"\A[0-9]{0,5}\.?[0-9]{0,3}([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,3})?\Z")


@given(QUANTITIES | st.text(max_size=8))
def test_quantity_check_agrees_with_the_engine(text: str) -> None:
    try:
        quantity.nano_units(text)
    except quantity.QuantityError:
        assert not names.is_quantity(text)
    else:
        assert names.is_quantity(text)
