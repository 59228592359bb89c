"""create, apply, edit, patch, scale, label and delete, as kubectl sends them."""

import json
from pathlib import Path

import pytest

from tests.builders.manifests import manifest
from tests.cli.servers import editor
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH, DEPLOYMENT, POLICY


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("deployment web --image nginx --replicas 2", "deployment.apps/web"),
        ("configmap settings --from-literal a=b", "configmap/settings"),
        ("secret generic keys --from-literal a=b", "secret/keys"),
        ("serviceaccount robot", "serviceaccount/robot"),
        ("job once --image busybox", "job.batch/once"),
        ("cronjob often --image busybox --schedule @daily", "cronjob.batch/often"),
        ("service clusterip web --tcp 80:8080", "service/web"),
        ("role reader --verb get --resource pods", "role.rbac.authorization.k8s.io/reader"),
    ],
)
def test_created_object_is_stored_and_a_second_create_is_refused(
    kubectl: Kubectl, words: str, named: str
) -> None:
    assert kubectl("create", *words.split()) == f"{named} created\n"
    kind, _slash, name = named.partition("/")
    assert kubectl.json(kind, name)["metadata"]
    kubectl("create", *words.split(), code=1)
    assert "AlreadyExists" in kubectl.errors or "already exists" in kubectl.errors
    assert kubectl("delete", kind, name).startswith(f'{kind} "{name}" deleted')


def test_apply_creates_then_reports_unchanged_and_configured(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web created\n"
    assert kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web unchanged\n"
    more = DEPLOYMENT.replace("replicas: 3", "replicas: 4").replace("image: busybox", "image: alpine")
    assert kubectl("apply", "-f", "-", stdin=more) == "deployment.apps/web configured\n"
    images = kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}")
    assert images == "nginx alpine"
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.generation}") == "2"


def test_apply_keeps_fields_set_by_others(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl("label", "deploy", "web", "tier=gold")
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT.replace("replicas: 3", "replicas: 5"))
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.labels.tier}") == "gold"


def test_diff_prints_the_changes_of_an_apply(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    assert kubectl("diff", "-f", "-", stdin=BOTH) == ""
    lines = kubectl("diff", "-f", "-", stdin=BOTH.replace("replicas: 3", "replicas: 4"), code=1).splitlines()
    assert "-  replicas: 3" in lines
    assert "+  replicas: 4" in lines
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "3"


def test_server_side_apply_conflicts_with_another_manager(kubectl: Kubectl) -> None:
    applied = kubectl("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT)
    assert applied == "deployment.apps/web serverside-applied\n"
    kubectl("scale", "deploy", "web", "--replicas", "7")
    kubectl("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT, code=1)
    assert "conflict with" in kubectl.errors
    assert ".spec.replicas" in kubectl.errors
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=DEPLOYMENT)
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "3"
    owners = kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.managedFields[*].manager}")
    assert "kubectl" in owners.split()


def test_patches_of_each_type_are_applied(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    containers = '{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"alpine"}]}}}}'
    kubectl("patch", "deploy", "web", "-p", containers)
    path = "jsonpath={.spec.template.spec.containers[*].image}"
    assert kubectl("get", "deploy", "web", "-o", path) == "nginx alpine"
    operation = '[{"op":"replace","path":"/spec/replicas","value":6}]'
    kubectl("patch", "deploy", "web", "--type=json", "-p", operation)
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "6"
    kubectl("patch", "pp", "web", "--type=merge", "-p", '{"spec":{"priority":3}}')
    assert kubectl("get", "pp", "web", "-o", "jsonpath={.spec.priority}") == "3"
    kubectl("patch", "pp", "web", "-p", "{}", code=1)
    assert "UnsupportedMediaType" in kubectl.errors or "not supported" in kubectl.errors


def test_scale_set_image_and_rollout_change_the_deployment(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    assert kubectl("scale", "deploy", "web", "--replicas", "5") == "deployment.apps/web scaled\n"
    done = kubectl("rollout", "status", "deploy", "web", "--timeout", "60s")
    assert done.splitlines()[-1] == 'deployment "web" successfully rolled out'
    assert kubectl("set", "image", "deploy/web", "nginx=nginx:2") == "deployment.apps/web image updated\n"
    assert kubectl("rollout", "restart", "deploy", "web") == "deployment.apps/web restarted\n"
    waited = kubectl("wait", "--for=jsonpath={.status.readyReplicas}=5", "deploy/web", "--timeout=60s")
    assert waited == "deployment.apps/web condition met\n"
    kubectl("scale", "deploy", "web", "--current-replicas", "4", "--replicas", "1", code=1)
    kubectl("scale", "deploy", "web", "--current-replicas", "5", "--replicas", "1")
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "1"


def test_labels_and_annotations_are_added_and_removed(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "settings")
    assert kubectl("label", "cm", "settings", "a=b") == "configmap/settings labeled\n"
    assert kubectl("annotate", "cm", "settings", "note=x") == "configmap/settings annotated\n"
    assert kubectl("label", "cm", "settings", "a-") == "configmap/settings unlabeled\n"
    metadata = kubectl.json("cm", "settings")["metadata"]
    assert isinstance(metadata, dict)
    assert "labels" not in metadata
    assert metadata["annotations"] == {"note": "x"}


def test_edited_object_is_stored(kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    monkeypatch.setenv("KUBE_EDITOR", editor(tmp_path, "text.replace('replicas: 3', 'replicas: 8')"))
    assert kubectl("edit", "deploy", "web") == "deployment.apps/web edited\n"
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "8"


def test_replace_with_a_stale_version_is_a_conflict(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    old = tmp_path / "old.json"
    old.write_text(kubectl("get", "deploy", "web", "-o", "json"))
    kubectl("scale", "deploy", "web", "--replicas", "4")
    kubectl("replace", "-f", str(old), code=1)
    assert "Operation cannot be fulfilled on deployments.apps" in kubectl.errors
    fresh = kubectl("get", "deploy", "web", "-o", "json")
    assert kubectl("replace", "-f", "-", stdin=fresh) == "deployment.apps/web replaced\n"


def test_dry_runs_are_not_stored(kubectl: Kubectl) -> None:
    printed = kubectl("apply", "--dry-run=server", "-f", "-", stdin=DEPLOYMENT)
    assert printed == "deployment.apps/web created (server dry run)\n"
    kubectl("get", "deploy", "web", code=1)
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl("delete", "deploy", "web", "--dry-run=server")
    assert kubectl("get", "deploy", "-o", "name") == "deployment.apps/web\n"


def test_invalid_fields_are_reported_by_name(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=POLICY.replace("placement:", "placment:"), code=1)
    assert 'strict decoding error: unknown field "spec.placment"' in kubectl.errors
    kubectl("apply", "--validate=warn", "-f", "-", stdin=POLICY.replace("placement:", "placment:"))
    assert 'Warning: unknown field "spec.placment"' in kubectl.errors
    kubectl("create", "-f", "-", stdin=EMPTY, code=1)
    assert 'The WorkloadRebalancer "empty" is invalid: spec.workloads' in kubectl.errors
    kubectl(
        "apply",
        "-f",
        "-",
        stdin=DEPLOYMENT.replace("name: web\n", "name: web\n  namespace: nowhere\n"),
        code=1,
    )
    assert kubectl.errors


def test_object_with_a_finalizer_is_deleted_once_it_is_removed(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "kept")
    kubectl("patch", "cm", "kept", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    kubectl("delete", "cm", "kept", "--wait=false")
    assert kubectl("get", "cm", "kept", "-o", "jsonpath={.metadata.deletionTimestamp}")
    kubectl("patch", "cm", "kept", "-p", '{"metadata":{"finalizers":null}}')
    kubectl("get", "cm", "kept", code=1)


def test_write_of_a_derived_object_is_refused(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until_true(lambda: bool(kubectl("get", "rb", "-o", "name")), lambda: "no binding")
    for refused in (("label", "rb", "web-deployment", "a=b"), ("delete", "rb", "web-deployment")):
        kubectl(*refused, code=1)
        assert "is made by the engine" in kubectl.errors
    kubectl("delete", "rb", "missing", code=1)
    assert "not found" in kubectl.errors


def test_write_of_an_old_version_of_a_derived_object_is_refused(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until_true(lambda: bool(kubectl("get", "rb", "-o", "name")), lambda: "no binding")
    kubectl("label", "rb", "web-deployment", "a=b", "--resource-version=1", code=1)
    assert "is made by the engine" in kubectl.errors
    # Clients may change this field, but only of the newest version.
    permission = '{"metadata":{"resourceVersion":"1"},"spec":{"gracefulEvictionTasks":null}}'
    kubectl("patch", "rb", "web-deployment", "--type=merge", "-p", permission, code=1)
    assert "the object has been modified" in kubectl.errors


EMPTY = """
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: empty}
spec: {workloads: []}
"""


def test_duplicate_field_is_reported(kubectl: Kubectl) -> None:
    twice = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1","a":"2"}}'
    path = f"/api/v1/namespaces/{kubectl.namespace}/configmaps"
    kubectl("create", "--raw", f"{path}?fieldValidation=Strict", "-f", "-", stdin=twice, code=1)
    assert 'strict decoding error: duplicate field "data.a"' in kubectl.errors
    kubectl("create", "--raw", f"{path}?fieldValidation=Warn", "-f", "-", stdin=twice)
    assert 'Warning: duplicate field "data.a"' in kubectl.errors
    assert kubectl("get", "configmap", "twice", "-o", "jsonpath={.data.a}") == "2"


def test_defaulted_fields_are_shown_and_do_not_count_as_a_change(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.strategy.type}") == "RollingUpdate"
    pod = "jsonpath={.spec.template.spec.dnsPolicy} {.spec.template.spec.containers[0].imagePullPolicy}"
    assert kubectl("get", "deploy", "web", "-o", pod) == "ClusterFirst Always"
    assert kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web unchanged\n"
    assert kubectl("diff", "-f", "-", stdin=DEPLOYMENT) == ""
    kubectl("replace", "-f", "-", stdin=kubectl("get", "deploy", "web", "-o", "json"))
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.generation}") == "1"


def test_prune_deletes_objects_missing_from_the_files(kubectl: Kubectl) -> None:
    def config_map(name: str, **labels: str) -> str:
        return json.dumps(manifest("v1", "ConfigMap", name, metadata={"labels": labels}))

    both = config_map("kept", app="shop") + config_map("dropped", app="shop")
    kubectl("apply", "-f", "-", stdin=both)
    kubectl("apply", "-f", "-", stdin=config_map("others", app="bank"))
    printed = kubectl(
        "apply",
        "--prune",
        "-l",
        "app=shop",
        "--prune-allowlist=core/v1/ConfigMap",
        "-f",
        "-",
        stdin=config_map("kept", app="shop"),
    )
    assert printed.splitlines() == ["configmap/kept unchanged", "configmap/dropped pruned"]
    left = kubectl("get", "configmaps", "-l", "app", "-o", "name").split()
    assert left == ["configmap/kept", "configmap/others"]
    # Without a list kubectl reads all kinds that it prunes by default.
    assert "configmap/kept pruned" in kubectl(
        "apply", "--prune", "-l", "app=shop", "-f", "-", stdin=config_map("new", app="shop")
    )


def test_type_of_a_service_is_changed_by_a_patch_of_the_type_alone(kubectl: Kubectl) -> None:
    kubectl("create", "service", "loadbalancer", "web", "--tcp=80")
    kubectl("patch", "svc", "web", "-p", '{"spec":{"type":"ClusterIP"}}')
    assert (
        kubectl("get", "svc", "web", "-o", "jsonpath={.spec.type}{.spec.externalTrafficPolicy}")
        == "ClusterIP"
    )
