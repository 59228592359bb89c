"""Kinds of one name in several API groups: each has its own keys, versions and lists."""

import msgspec

from engine.observer.observation import Changes, Observation, Observations
from engine.scheduler.decider import Decider
from events import observations
from events.json_values import Json
from events.kube_objects import KubeObject

KNATIVE = "serving.knative.dev"
CLUSTER_API = "cluster.x-k8s.io"


def object_of(api_version: str, kind: str, version: int, namespace: str = "shop") -> Json:
    metadata = {
        "name": "web",
        "namespace": namespace,
        "uid": f"{api_version}-1",
        "resourceVersion": str(version),
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def observed(known: Observations, value: Json) -> observations.ObjectObserved:
    seen = known.changed(KubeObject(value), is_gone=False)
    assert isinstance(seen, observations.ObjectObserved)
    return seen


def test_kinds_of_one_name_have_keys_of_their_own() -> None:
    known = Observations()
    seen = [
        observed(known, object_of(api_version, kind, 9 - number))
        for number, (api_version, kind) in enumerate(
            (
                ("v1", "Service"),
                (f"{KNATIVE}/v1", "Service"),
                ("apps/v1", "Deployment"),
                ("example.com/v1", "Gizmo"),
            )
        )
    ]
    assert [event.record_key for event in seen] == [
        "service:shop/web",
        f"service.{KNATIVE}:shop/web",
        "deployment:shop/web",
        "gizmo.example.com:shop/web",
    ]
    assert known.newest["Service"] == 9
    assert known.newest[f"Service.{KNATIVE}"] == 8


def test_list_of_a_kind_ends_no_object_of_another_group() -> None:
    known = Observations()
    observed(known, object_of("v1", "Service", 5))
    observed(known, object_of(f"{KNATIVE}/v1", "Service", 6))
    assert [event.record_key for event in known.listed(KNATIVE, "Service", [])] == [
        f"service.{KNATIVE}:shop/web"
    ]
    assert [event.record_key for event in known.listed("", "Service", [])] == ["service:shop/web"]


def test_cluster_of_another_group_is_no_member() -> None:
    decider = Decider("reballast")
    # Reading it as one of Karmada's clusters would raise an error: it has no such spec.
    value = {**object_of(f"{CLUSTER_API}/v1beta1", "Cluster", 7), "spec": "of another form"}
    decider.take(observed(Observations(), value))
    assert not decider.has_due


def test_objects_recorded_without_their_group_are_known_by_it() -> None:
    """As in logs before groups were recorded."""
    gizmo = object_of("example.com/v1", "Gizmo", 7)
    older = observations.ObjectObserved(
        kind="Gizmo",
        name="web",
        namespace="shop",
        version=7,
        manifest=msgspec.Raw(msgspec.json.encode(gizmo)),
    )
    known, changes = Observations(), Changes()
    known.restore(changes.read(older))
    assert known.changed(KubeObject(gizmo), is_gone=False) is None
    assert known.newest == {"Gizmo.example.com": 7}
    ended: Observation = observations.ObjectVanished(kind="Gizmo", name="web", namespace="shop", version=8)
    known.restore(changes.read(ended))
    assert known.changed(KubeObject(object_of("example.com/v1", "Gizmo", 9)), is_gone=False) is not None
