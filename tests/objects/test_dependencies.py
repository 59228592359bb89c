"""Dependencies of a template: every reference of a pod to another object, except those that the workload creates."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.objects.dependencies import dependencies, ordered
from events.json_values import Json

DEPLOYMENT = ("apps/v1", "Deployment")
CRON_JOB = ("batch/v1", "CronJob")
POD = ("v1", "Pod")
TEMPLATED = [
    DEPLOYMENT,
    *(("apps/v1", kind) for kind in ("StatefulSet", "DaemonSet", "ReplicaSet")),
    ("batch/v1", "Job"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def of_pod(pod: Json, kind: tuple[str, str] = DEPLOYMENT, **fields: object) -> list[str]:
    """Return the dependencies of a workload with this pod, as kind/name."""
    template: Json = {"template": {"spec": pod}}
    spec = pod if kind == POD else {"jobTemplate": {"spec": template}} if kind == CRON_JOB else template
    return dependencies_of({"spec": {**spec, **fields}}, kind)


def dependencies_of(root: object, kind: tuple[str, str] = DEPLOYMENT, namespace: str = "shop") -> list[str]:
    needed = dependencies(*kind, namespace, msgspec.json.encode(root))
    assert all((dependency.api_version, dependency.namespace) == ("v1", namespace) for dependency in needed)
    return [f"{dependency.kind}/{dependency.name}" for dependency in needed]


@pytest.mark.parametrize("kind", [POD, CRON_JOB, *TEMPLATED])
def test_pods_of_each_kind_are_read(kind: tuple[str, str]) -> None:
    assert of_pod({"volumes": [{"configMap": {"name": "settings"}}]}, kind) == ["ConfigMap/settings"]


@pytest.mark.parametrize("group", ["containers", "initContainers", "ephemeralContainers"])
def test_references_of_every_container_are_read(group: str) -> None:
    environment = [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "one", "key": "a"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "two", "key": "b", "optional": True}}},
        {"name": "C", "value": "plain"},
    ]
    sources = [{"configMapRef": {"name": "three"}}, {"prefix": "X_", "secretRef": {"name": "four"}}]
    pod: Json = {group: [{"name": "main", "env": environment, "envFrom": sources}]}
    assert of_pod(pod) == ["ConfigMap/one", "ConfigMap/three", "Secret/four", "Secret/two"]


VOLUMES: list[tuple[Json, str]] = [
    ({"configMap": {"name": "a"}}, "ConfigMap/a"),
    ({"secret": {"secretName": "a"}}, "Secret/a"),
    ({"persistentVolumeClaim": {"claimName": "a"}}, "PersistentVolumeClaim/a"),
    ({"projected": {"sources": [{"configMap": {"name": "a"}}]}}, "ConfigMap/a"),
    ({"projected": {"sources": [{"serviceAccountToken": {}}, {"secret": {"name": "a"}}]}}, "Secret/a"),
    ({"azureFile": {"secretName": "a", "shareName": "b"}}, "Secret/a"),
    ({"cephfs": {"secretRef": {"name": "a"}}}, "Secret/a"),
    ({"cinder": {"secretRef": {"name": "a"}}}, "Secret/a"),
    ({"flexVolume": {"secretRef": {"name": "a"}}}, "Secret/a"),
    ({"iscsi": {"secretRef": {"name": "a"}}}, "Secret/a"),
    ({"rbd": {"secretRef": {"name": "a"}}}, "Secret/a"),
    ({"scaleIO": {"secretRef": {"name": "a"}}}, "Secret/a"),
    ({"storageos": {"secretRef": {"name": "a"}}}, "Secret/a"),
    ({"csi": {"driver": "d", "nodePublishSecretRef": {"name": "a"}}}, "Secret/a"),
]


@pytest.mark.parametrize(("volume", "needed"), VOLUMES)
def test_references_of_every_volume_type_are_read(volume: dict[str, object], needed: str) -> None:
    assert of_pod({"volumes": [{"name": "v", **volume}]}) == [needed]


def test_image_pull_secrets_and_service_account_are_dependencies() -> None:
    pod: Json = {"imagePullSecrets": [{"name": "registry"}], "serviceAccountName": "robot"}
    assert of_pod(pod) == ["Secret/registry", "ServiceAccount/robot"]


def test_default_service_account_is_no_dependency() -> None:
    assert of_pod({"serviceAccountName": "default"}) == []


def test_repeated_reference_is_one_dependency() -> None:
    pod: Json = {
        "volumes": [{"secret": {"secretName": "keys"}}],
        "containers": [{"envFrom": [{"secretRef": {"name": "keys"}}]}],
    }
    assert of_pod(pod) == ["Secret/keys"]


def test_claims_created_by_a_stateful_set_are_no_dependencies() -> None:
    volumes = [{"persistentVolumeClaim": {"claimName": name}} for name in ("data", "shared")]
    own: list[Json] = [{"metadata": {"name": "data"}}, {"metadata": {"name": {}}}]
    kind = ("apps/v1", "StatefulSet")
    assert of_pod({"volumes": volumes}, kind, volumeClaimTemplates=own) == ["PersistentVolumeClaim/shared"]
    assert len(of_pod({"volumes": volumes}, volumeClaimTemplates=own)) == 2


def test_certificates_of_an_ingress_are_dependencies() -> None:
    ingress = {"spec": {"tls": [{"hosts": ["a"], "secretName": "cert"}, {"hosts": ["b"]}]}}
    assert dependencies_of(ingress, ("networking.k8s.io/v1", "Ingress")) == ["Secret/cert"]


def test_other_kinds_and_cluster_scoped_objects_have_no_dependencies() -> None:
    root = {"spec": {"template": {"spec": {"volumes": [{"secret": {"secretName": "keys"}}]}}}}
    assert dependencies_of(root) == ["Secret/keys"]
    assert dependencies_of(root, ("v1", "Service")) == []
    assert dependencies_of(root, ("example.io/v1", "Deployment")) == []
    assert dependencies_of(root, namespace="") == []


def test_escaped_field_names_are_read() -> None:
    raw = rb'{"spec":{"volumes":[{"\u0073\u0065cret":{"\u0073\u0065\u0063retName":"keys"}}]}}'
    (needed,) = dependencies("v1", "Pod", "shop", raw)
    assert (needed.kind, needed.name) == ("Secret", "keys")


@pytest.mark.parametrize("name", ["", "Upper", "a/b", "../a", "-a", "a" * 254, 7, None, {"a": 1}, ["a"]])
def test_invalid_name_is_no_dependency(name: object) -> None:
    assert of_pod({"serviceAccountName": name, "volumes": [{"secret": {"secretName": name}}]}) == []


@pytest.mark.parametrize("raw", [b"", b"secret", b'{"secret":1e999}', b'{"secret":"\\ud800"}', b"[" * 9999])
def test_unreadable_template_has_no_dependencies(raw: bytes) -> None:
    assert dependencies(*DEPLOYMENT, "shop", raw) == ()


@given(pod=JSON, part=JSON, field=st.sampled_from(("volumes", "containers", "imagePullSecrets")))
def test_any_shape_is_read(pod: object, part: object, field: str) -> None:
    odd = {field: [part, {"secret": part, "env": part, "envFrom": [part], "name": part}], "x": pod}
    for root in (pod, odd, {"spec": pod}, {"spec": odd}):
        needed = dependencies("v1", "Pod", "shop", msgspec.json.encode(root))
        assert needed == ordered(needed)
