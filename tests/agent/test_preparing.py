"""Preparation of objects for a member: marks, fields that the member sets, and ownership."""

from typing import Any

import msgspec
import pytest

from engine.agent import messages, object_preparation
from events import shapes
from events.kube_objects import KubeObject
from events.shapes import WorkloadRef
from tests.builders.manifests import manifest as object_of

Json = dict[str, Any]
ANNOTATIONS = [
    "resourcebinding.karmada.io/name",
    "resourcebinding.karmada.io/namespace",
    "resourcetemplate.karmada.io/managed-annotations",
    "resourcetemplate.karmada.io/managed-labels",
    "work.karmada.io/name",
    "work.karmada.io/namespace",
]


def prepared(manifest: Json) -> KubeObject:
    metadata = manifest["metadata"]
    ref = WorkloadRef(
        api_version=manifest["apiVersion"],
        kind=manifest["kind"],
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
    )
    work = messages.Work(
        key="default/web-deployment",
        state="applied",
        term=1,
        step=1,
        name="web-x",
        template=ref,
    )
    owner = object_preparation.Owner(cluster="one", work=work)
    return object_preparation.prepared(msgspec.json.encode(manifest), owner)


def named(api_version: str, kind: str, **fields: object) -> Json:
    metadata: Json = {"uid": "u", "resourceVersion": "7", "finalizers": ["f"]}
    return object_of(api_version, kind, "web", "default", metadata=metadata) | fields


def test_prepared_object_has_managed_marks_and_no_server_fields() -> None:
    deployment = prepared(named("apps/v1", "Deployment", spec={"replicas": 3}, status={"replicas": 1}))
    assert deployment.metadata == {
        "name": "web",
        "namespace": "default",
        "labels": {"karmada.io/managed": "true"},
        "annotations": {
            "work.karmada.io/namespace": "karmada-es-one",
            "work.karmada.io/name": "web-x",
            "resourcebinding.karmada.io/name": "web-deployment",
            "resourcebinding.karmada.io/namespace": "default",
            "resourcetemplate.karmada.io/managed-annotations": ",".join(ANNOTATIONS),
            "resourcetemplate.karmada.io/managed-labels": "karmada.io/managed",
        },
    }
    assert deployment.at("spec") == {"replicas": 3}
    assert "status" not in deployment.document
    assert object_preparation.has_agent_marks(deployment, "one")
    assert not object_preparation.has_agent_marks(deployment, "two")


@pytest.mark.parametrize(
    ("manifest", "left"),
    [
        (
            named(
                "v1",
                "Service",
                spec={
                    "clusterIP": "10.0.0.1",
                    "clusterIPs": ["10.0.0.1"],
                    "healthCheckNodePort": 4,
                    "ports": [{"port": 80, "nodePort": 3}],
                },
            ),
            {"spec": {"healthCheckNodePort": 4, "ports": [{"port": 80, "nodePort": 3}]}},
        ),
        (named("v1", "Service", spec={"clusterIP": "None"}), {"spec": {"clusterIP": "None"}}),
        (
            named("v1", "PersistentVolume", spec={"claimRef": {"name": "data", "uid": "u"}}),
            {"spec": {"claimRef": {"name": "data"}}},
        ),
        (named("v1", "ServiceAccount", secrets=[{"name": "web-token-x7k2p"}]), {}),
        (
            named("v1", "ServiceAccount", secrets=[{"name": "web-token-x7k2p"}, {"name": "registry"}]),
            {"secrets": [{"name": "registry"}]},
        ),
        (
            named("v1", "Secret", type="kubernetes.io/service-account-token", data={"token": "x"}),
            {"type": "kubernetes.io/service-account-token"},
        ),
        (
            named("batch/v1", "Job", spec={"selector": {"a": "b"}, "template": {"spec": {}}}),
            {"spec": {"template": {"spec": {}}}},
        ),
        # The member would delete the finished Job, and the agent would run it again.
        (
            named("batch/v1", "Job", spec={"manualSelector": True, "ttlSecondsAfterFinished": 60}),
            {"spec": {"manualSelector": True}},
        ),
    ],
)
def test_fields_set_by_the_member_are_left_out(manifest: Json, left: Json) -> None:
    applied = prepared(manifest)
    rest = {
        name: value
        for name, value in applied.document.items()
        if name not in {"apiVersion", "kind", "metadata"}
    }
    assert rest == left


def entry(manager: str, operation: str, *fields: str) -> Json:
    owned: Json = {"f:spec": {f"f:{name}": {} for name in fields}}
    return {"manager": manager, "operation": operation, "fieldsV1": owned}


def test_member_replicas_are_applied_until_another_manager_owns_them() -> None:
    manifest = KubeObject(named("apps/v1", "Deployment", spec={"replicas": 2}))
    owned_by_agent = KubeObject(
        {
            "metadata": {"managedFields": [entry("reballast", "Apply", "replicas")]},
            "spec": {"replicas": 6},
        }
    )
    owned_by_hpa = KubeObject(
        {
            "metadata": {"managedFields": [entry("hpa", "Update", "replicas")]},
            "spec": {"replicas": 6},
        }
    )
    scaled = object_preparation.retained_paths(manifest, None, is_scaled=True)
    assert (
        object_preparation.with_retained_fields(
            manifest, owned_by_agent, object_preparation.retained_paths(manifest, None, is_scaled=False)
        )
        == manifest
    )
    assert object_preparation.with_retained_fields(manifest, owned_by_agent, scaled).at("spec") == {
        "replicas": 6
    }
    assert object_preparation.with_retained_fields(manifest, owned_by_hpa, scaled).at("spec") == {}
    assert object_preparation.with_retained_fields(manifest, None, scaled).at("spec") == {"replicas": 2}


@pytest.mark.parametrize("bound", ["static", "pvc-1"])
def test_claim_names_the_volume_of_its_template_until_it_is_bound(bound: str) -> None:
    template = prepared(named("v1", "PersistentVolumeClaim", spec={"volumeName": "static"}))
    assert template.at("spec") == {"volumeName": "static"}
    retained = object_preparation.retained_paths(template, None, is_scaled=False)
    owned = entry("reballast", "Apply", "volumeName")
    live = KubeObject({"metadata": {"managedFields": [owned]}, "spec": {"volumeName": bound}})
    assert object_preparation.with_retained_fields(template, live, retained).at("spec") == {
        "volumeName": bound
    }


@pytest.mark.parametrize(("live", "applied"), [({}, 30_001), ({"healthCheckNodePort": 30_002}, 30_002)])
def test_service_keeps_the_health_check_port_that_it_has(live: Json, applied: int) -> None:
    template = prepared(named("v1", "Service", spec={"healthCheckNodePort": 30_001}))
    retained = object_preparation.retained_paths(template, None, is_scaled=False)
    owned = entry("reballast", "Apply", "healthCheckNodePort")
    current = KubeObject({"metadata": {"managedFields": [owned]}, "spec": live})
    kept = object_preparation.with_retained_fields(template, current, retained)
    assert kept.at("spec") == {"healthCheckNodePort": applied}


def test_replicas_of_a_custom_kind_are_at_the_path_of_its_interpreter() -> None:
    manifest = KubeObject(named("flink.example.io/v1", "FlinkJob", spec={"job": {"size": 2}}))
    scaled = object_preparation.retained_paths(
        manifest, shapes.Reading(replicas=".spec.job.size"), is_scaled=True
    )
    assert scaled == (("spec", "job", "size"),)
    assert object_preparation.with_retained_fields(
        manifest, KubeObject({"spec": {"job": {"size": 6}}}), scaled
    ).at("spec") == {"job": {"size": 6}}


def test_fields_retained_by_an_interpreter_are_not_reset() -> None:
    manifest = KubeObject(
        named("flink.example.io/v1", "FlinkJob", spec={"job": {"state": "running", "size": 2}})
    )
    reading = shapes.Reading(retained=("spec.job.state", "spec.savepoint"))
    retained = object_preparation.retained_paths(manifest, reading, is_scaled=False)
    stands = KubeObject({"spec": {"job": {"state": "suspended", "size": 1}}})
    kept = object_preparation.with_retained_fields(manifest, stands, retained)
    assert kept.at("spec") == {"job": {"state": "suspended", "size": 2}}

    owned: Json = {"f:spec": {"f:job": {"f:state": {}}}}
    by_others: Json = {"manager": "operator", "operation": "Update", "fieldsV1": owned}
    theirs = stands.with_metadata({"managedFields": [by_others]})
    assert object_preparation.with_retained_fields(manifest, theirs, retained).at("spec") == {
        "job": {"size": 2}
    }

    def digest(fields: Json) -> str:
        entry: Json = {"manager": "reballast", "operation": "Apply", "fieldsV1": fields}
        return object_preparation.owned_digest(
            KubeObject({"metadata": {"managedFields": [entry]}}), "reballast", retained
        )

    assert digest({"f:spec": {"f:job": {"f:state": {}, "f:size": {}}}}) == digest(
        {"f:spec": {"f:job": {"f:size": {}}}}
    )


def test_digest_of_owned_fields_ignores_other_fields() -> None:
    def digest(*entries: Json, without: str = "") -> str:
        paths = (("spec", without),) if without else ()
        return object_preparation.owned_digest(
            KubeObject({"metadata": {"managedFields": list(entries)}}), "reballast", paths
        )

    our_fields = entry("reballast", "Apply", "replicas", "paused")
    assert digest(our_fields) == digest(entry("kubectl", "Update", "paused"), our_fields)
    assert digest(our_fields) != digest(entry("reballast", "Apply", "paused"))
    assert digest(our_fields, without="replicas") == digest(
        entry("reballast", "Apply", "paused"), without="replicas"
    )
    assert digest(entry("reballast", "Update", "paused")) == ""
