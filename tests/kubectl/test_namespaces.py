"""Namespaces: deletion with their content, finalizers, and built-in namespaces."""

from tests.kubectl import streams
from tests.kubectl.commands import Kubectl
from tests.kubectl.control_planes import ControlPlane
from tests.kubectl.manifests import BOTH


def _new_namespace(kubectl: Kubectl) -> str:
    name = f"{kubectl.namespace[:50]}-2"
    kubectl("create", "namespace", name)
    return name


def _until_gone(kubectl: Kubectl, *words: str) -> None:
    kubectl.until_true(
        lambda: not kubectl("get", *words, "-o", "name", code=None), lambda: f"{words} is left"
    )


def test_deleted_namespace_is_deleted_with_its_objects(kubectl: Kubectl) -> None:
    name = _new_namespace(kubectl)
    kubectl("apply", "-n", name, "-f", "-", stdin=BOTH)
    kubectl.until(["NAME SCHEDULED FULLYAPPLIED", "web-deployment True True"], "rb", "-n", name)
    assert kubectl("get", "namespace", name, "-o", "jsonpath={.status.phase}") == "Active"
    label = f"kubernetes.io/metadata.name={name}"
    assert kubectl("get", "namespaces", "-l", label, "-o", "name") == f"namespace/{name}\n"
    assert kubectl("delete", "namespace", name).startswith(f'namespace "{name}" deleted')
    kubectl("get", "namespace", name, code=1)
    kubectl.until_true(lambda: kubectl("get", "rb,deploy,pp", "-n", name, "-o", "name") == "", lambda: "left")
    kubectl.until_true(
        lambda: kubectl.on("member1")("get", "deploy", "-n", name, "-o", "name") == "", lambda: "runs on"
    )
    # A new namespace of the same name is empty.
    kubectl("create", "namespace", name)
    assert kubectl("get", "deploy,pp", "-n", name, "-o", "name") == ""
    kubectl("delete", "namespace", name)


def test_finalizer_of_an_object_keeps_its_namespace_terminating(kubectl: Kubectl) -> None:
    name = _new_namespace(kubectl)
    kubectl("create", "configmap", "kept", "-n", name)
    kubectl("create", "configmap", "other", "-n", name)
    hold = '{"metadata":{"finalizers":["example.com/hold"]}}'
    kubectl("patch", "configmap", "kept", "-n", name, "-p", hold)
    kubectl("delete", "namespace", name, "--wait=false")
    assert kubectl.table("namespace", name) == ["NAME STATUS", f"{name} Terminating"]
    _until_gone(kubectl, "configmap", "other", "-n", name)
    assert kubectl("get", "configmap", "kept", "-n", name, "-o", "jsonpath={.metadata.deletionTimestamp}")
    kubectl("create", "deployment", "web", "--image=nginx", "-n", name, code=1)
    assert kubectl.errors == (
        f'error: failed to create deployment: deployments.apps "web" is forbidden: unable to create new content in'
        f" namespace {name} because it is being terminated\n"
    )
    kubectl("label", "namespace", name, "a=b")
    assert kubectl("get", "namespace", name, "-o", "jsonpath={.status.phase}") == "Terminating"
    kubectl("patch", "configmap", "kept", "-n", name, "-p", '{"metadata":{"finalizers":null}}')
    kubectl("get", "namespace", name, code=1)


def test_protected_object_is_not_deleted_and_keeps_its_namespace(kubectl: Kubectl) -> None:
    name = _new_namespace(kubectl)
    kubectl("create", "configmap", "kept", "-n", name)
    kubectl("create", "configmap", "other", "-n", name)
    label = "resourcetemplate.karmada.io/deletion-protected"
    kubectl("label", "configmap", "kept", "-n", name, f"{label}=Always")
    refusal = (
        'Error from server (Forbidden): admission webhook "resourcedeletionprotection.karmada.io" denied the request: '
        f"This resource is protected, please make sure to remove the label: {label}\n"
    )
    kubectl("delete", "configmap", "kept", "-n", name, code=1)
    assert kubectl.errors == refusal
    kubectl("label", "namespace", name, f"{label}=Always")
    kubectl("delete", "namespace", name, code=1)
    assert kubectl.errors.endswith(refusal)
    kubectl("label", "namespace", name, f"{label}=Never", "--overwrite")
    kubectl("delete", "namespace", name, "--wait=false")
    assert kubectl.table("namespace", name) == ["NAME STATUS", f"{name} Terminating"]
    _until_gone(kubectl, "configmap", "other", "-n", name)
    assert "configmap/kept\n" in kubectl("get", "configmap", "-n", name, "-o", "name")
    kubectl("label", "configmap", "kept", "-n", name, f"{label}-")
    kubectl("get", "namespace", name, code=1)


def test_contents_of_a_deleted_namespace_can_be_changed_for_two_seconds(
    kubectl: Kubectl, control_plane: ControlPlane
) -> None:
    name = _new_namespace(kubectl)
    kubectl("create", "configmap", "kept", "-n", name)
    namespace = f"/api/v1/namespaces/{name}"
    kept, label = f"{namespace}/configmaps/kept", {"metadata": {"labels": {"a": "b"}}}
    merge = {"content-type": "application/merge-patch+json"}
    # Without kubectl, three of which may take longer than two seconds on a busy machine.
    with streams.client(control_plane.writing) as client:
        client.delete(namespace).raise_for_status()
        for path in (kept, namespace):
            client.patch(path, json=label, headers=merge).raise_for_status()
        assert client.get(kept).json()["metadata"]["labels"] == {"a": "b"}
    _until_gone(kubectl, "namespace", name)


def test_protected_cluster_is_not_deleted(kubectl: Kubectl) -> None:
    kubectl("label", "cluster", "member3", "resourcetemplate.karmada.io/deletion-protected=Always")
    kubectl("delete", "cluster", "member3", code=1)
    assert kubectl.errors.endswith(
        'Error from server (Forbidden): clusters.cluster.karmada.io "member3" is forbidden: This resource is protected,'
        " please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected\n"
    )
    kubectl("label", "cluster", "member3", "resourcetemplate.karmada.io/deletion-protected-")


def test_object_in_an_unknown_namespace_is_refused(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "lost", "-n", "nowhere", code=1)
    assert 'namespaces "nowhere" not found' in kubectl.errors


def test_builtin_namespaces_exist_and_cannot_be_deleted(kubectl: Kubectl) -> None:
    names = kubectl("get", "namespaces", "-o", "name").split()
    for name in (
        "default",
        "kube-system",
        "kube-public",
        "karmada-cluster",
        "karmada-system",
        "karmada-es-member1",
    ):
        assert f"namespace/{name}" in names
    kubectl("delete", "namespace", "default", code=1)
    assert "Forbidden" in kubectl.errors
