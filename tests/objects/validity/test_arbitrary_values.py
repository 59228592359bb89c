"""Arbitrary values in any place cause faults only, and quantities are checked as the engine reads them."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.values import quantity
from events import kube_objects
from events.validation import manifests, names
from tests.objects.validity.examples import DEPLOYMENT, INTERPRETER, POLICY, REBALANCER, TAINT_POLICY, changed

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
    for fault in manifests.object_faults(kube_objects.read_head(raw), raw):
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
