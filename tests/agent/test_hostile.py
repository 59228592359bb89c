"""Arbitrary templates and member objects: they are processed as far as possible, without an exception."""

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from engine.agent import (
    member_capacity,
    messages,
    object_preparation,
    reconciliation,
    statuses,
    watch_receivers,
)
from events.kube_objects import KubeObject

KINDS = st.sampled_from(
    [
        ("v1", "Service"),
        ("v1", "Pod"),
        ("v1", "Node"),
        ("v1", "Secret"),
        ("v1", "PersistentVolumeClaim"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "DaemonSet"),
        ("batch/v1", "Job"),
        ("policy/v1", "PodDisruptionBudget"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ]
)
FIELDS = st.sampled_from(
    [
        "spec",
        "status",
        "metadata",
        "labels",
        "annotations",
        "ports",
        "template",
        "containers",
        "resources",
        "requests",
        "allocatable",
        "conditions",
        "managedFields",
        "fieldsV1",
        "replicas",
        "scaleTargetRef",
        "loadBalancer",
        "phase",
        "type",
        "name",
        "namespace",
        "uid",
        "manager",
        "operation",
        "f:spec",
        "cpu",
    ]
)
SCALARS: st.SearchStrategy[object] = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.text(max_size=4), st.just("Apply")
)


def nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(st.lists(inner, max_size=2), st.dictionaries(FIELDS, inner, max_size=3))


def named(kind: tuple[str, str], fields: dict[str, object]) -> dict[str, object]:
    return {**fields, "apiVersion": kind[0], "kind": kind[1]}


ANYTHING = st.recursive(SCALARS, nested, max_leaves=8)
OBJECTS = st.builds(named, KINDS, st.dictionaries(FIELDS, ANYTHING, max_size=5))
WORK = messages.Work(key="default/web-deployment", state="applied", term=1, step=1, name="web-x")


@given(OBJECTS)
def test_arbitrary_templates_are_prepared(value: dict[str, object]) -> None:
    owner = object_preparation.Owner(cluster="one", work=WORK)
    prepared = object_preparation.prepared(msgspec.json.encode(value), owner)
    assert object_preparation.has_agent_marks(prepared, "one")
    assert "status" not in prepared.document
    retained = object_preparation.retained_paths(prepared, None, is_scaled=True)
    kept = object_preparation.with_retained_fields(prepared, KubeObject(value), retained).document
    assert kept.keys() == prepared.document.keys() | {"spec"} or "spec" not in prepared.document


@given(OBJECTS)
@example({"status": {"phase": []}})
def test_arbitrary_member_objects_are_observed(fields: dict[str, object]) -> None:
    value = KubeObject(fields)
    entry = reconciliation.Entry(work=WORK)
    entry.seen = reconciliation.Observed(uid="u", state=statuses.object_state(value))
    object_preparation.owned_digest(value, "reballast", [("spec", "replicas")])
    object_preparation.is_owned_by_others(value, ("spec", "replicas"))
    watch_receivers.identity_of(("apps/v1", "Deployment"), value)
    scalers = watch_receivers.Scalers(lambda _place: None)
    scalers.listed([value])
    pods = [pod for pod in (member_capacity.pod_of(value),) if pod is not None]
    report = member_capacity.report({"n": member_capacity.node_of(value)}, pods, ())
    assert msgspec.json.decode(msgspec.json.encode(report), type=messages.CapacityReport) == report
