"""Cluster objects: access to a member with the credentials of its Cluster, status, labels and deletion."""

import base64
import json
import ssl
from pathlib import Path
from typing import cast

import httpx

from events.json_values import Json
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH


def _client(kubectl: Kubectl, reference: str) -> httpx.Client:
    """Return a client configured from a Cluster object and its secret only, as Karmada does."""
    cluster = kubectl.json("cluster", "member1")
    spec = cast("dict[str, object]", cluster["spec"])
    secret = cast("dict[str, str]", spec[reference])
    stored_secret = kubectl.json("secret", secret["name"], "--namespace", secret["namespace"])
    data = {
        name: base64.b64decode(text) for name, text in cast("dict[str, str]", stored_secret["data"]).items()
    }
    trusted = ssl.create_default_context(cadata=data["caBundle"].decode())
    headers = {"authorization": f"Bearer {data['token'].decode()}"}
    return httpx.Client(base_url=str(spec["apiEndpoint"]), verify=trusted, headers=headers)


def test_member_is_reachable_with_the_credentials_of_its_secret(kubectl: Kubectl) -> None:
    kubectl.until_true(
        lambda: bool(kubectl("get", "cluster", "member1", "-o", "jsonpath={.spec.secretRef.name}")),
        lambda: kubectl("get", "cluster", "member1", "-o", "yaml"),
    )
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.on("member1").until(["NAME READY UP-TO-DATE AVAILABLE", "web 2/2 2 2"], "deploy")
    for reference in ("secretRef", "impersonatorSecretRef"):
        with _client(kubectl, reference) as client:
            listed = client.get(f"/apis/apps/v1/namespaces/{kubectl.namespace}/deployments").json()
            assert [item["spec"]["replicas"] for item in listed["items"]] == [2]
            assert client.get("/version").json()["major"] == "1"
            # The token is valid for this member only.
            root = str(client.base_url).partition("/apis/")[0]
            path = str(client.base_url).replace("member1", "member2").rstrip("/")
            for closed in (
                f"{root}/api/v1/namespaces",
                f"{path}/api/v1/pods",
                f"{root}/apis/apps/v1/deployments",
            ):
                assert client.get(closed).status_code == 403


def test_cluster_status_has_version_nodes_api_enablements_and_conditions(kubectl: Kubectl) -> None:
    status = cast("dict[str, object]", kubectl.json("cluster", "member1")["status"])
    assert status["kubernetesVersion"] == "v1.36.2"
    assert status["nodeSummary"] == {"totalNum": 100, "readyNum": 100}
    enabled = {
        enablement["groupVersion"] for enablement in cast("list[dict[str, str]]", status["apiEnablements"])
    }
    assert {"v1", "apps/v1", "batch/v1"} <= enabled
    conditions = cast("list[dict[str, str]]", status["conditions"])
    assert [(condition["type"], condition["status"], condition["reason"]) for condition in conditions] == [
        ("Ready", "True", "ClusterReady"),
        ("CompleteAPIEnablements", "True", "Complete"),
    ]
    for kind in ("Ready", "CompleteAPIEnablements"):
        waited = kubectl("wait", f"--for=condition={kind}", "cluster/member1", "--timeout=60s")
        assert waited == "cluster.cluster.karmada.io/member1 condition met\n"
    listed = cast("list[dict[str, list[Json]]]", status["apiEnablements"])
    assert {"kind": "Deployment", "name": "deployments"} in [
        resource for api in listed for resource in api["resources"]
    ]
    summary = cast("dict[str, dict[str, str]]", status["resourceSummary"])
    assert summary["allocatable"]["memory"] == "12800Gi"
    assert summary["allocatable"]["pods"] == "11k"
    assert kubectl.table("clusters")[:2] == ["NAME VERSION MODE READY", "member1 v1.36.2 Push True"]
    wide = kubectl.table("clusters", "-o", "wide")[0]
    assert wide == "NAME VERSION MODE READY ZONES REGION PROVIDER API-ENDPOINT PROXY-URL"


def test_cluster_is_identified_by_its_namespace_and_has_the_default_grades(kubectl: Kubectl) -> None:
    spec = cast("Json", kubectl.json("cluster", "member1")["spec"])
    namespace = kubectl.on("member1").json("namespace", "kube-system")
    assert spec["id"] == cast("Json", namespace["metadata"])["uid"]
    name = f"graded-{kubectl.namespace[:20]}"
    kubectl("create", "-f", "-", stdin=_cluster(name))
    created = cast("Json", kubectl.json("cluster", name)["spec"])
    kubectl("delete", "cluster", name)
    assert created["resourceModels"] == spec["resourceModels"]
    models = cast("list[Json]", spec["resourceModels"])
    assert [model["grade"] for model in models] == list(range(9))
    assert models[0]["ranges"] == [
        {"name": "cpu", "min": "0", "max": "1"},
        {"name": "memory", "min": "0", "max": "4Gi"},
    ]
    assert models[8]["ranges"] == [
        {"name": "cpu", "min": "128", "max": "9223372036854775807"},
        {"name": "memory", "min": "1Ti", "max": "9223372036854775807"},
    ]


def test_condition_that_a_client_writes_is_shown_and_taints_the_cluster(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=_NETWORK_POLICY)
    written = {"type": "NetworkReady", "status": "False", "reason": "PacketLoss", "message": "m"}
    before = cast("dict[str, list[Json]]", kubectl.json("cluster", "member3")["status"])["conditions"]
    try:
        for status, taints in (("False", [("network", "NoSchedule")]), ("True", [])):
            changed = {**written, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}
            patch = json.dumps({"status": {"conditions": [*before, changed]}})
            kubectl("patch", "cluster", "member3", "--subresource=status", "--type=merge", "-p", patch)
            cluster = kubectl.json("cluster", "member3")
            assert changed in cast("dict[str, list[Json]]", cluster["status"])["conditions"]
            kubectl.until_true(
                lambda taints=taints: _taints(kubectl, "member3") == taints,
                lambda: kubectl("get", "cluster", "member3", "-o", "yaml"),
            )
        kubectl("wait", "--for=condition=NetworkReady", "cluster/member3", "--timeout=60s")
        described = " ".join(kubectl("describe", "cluster", "member3").split())
        taint = "{Key:network,Effect:NoSchedule}"
        for change in ("added", "removed"):
            assert f"cluster-controller Taint cluster succeed: {change} {taint}." in described
    finally:
        kubectl("delete", "clustertaintpolicy", "network")
        patch = json.dumps({"status": {"conditions": before}})
        kubectl("patch", "cluster", "member3", "--subresource=status", "--type=merge", "-p", patch)
    after = cast("dict[str, list[Json]]", kubectl.json("cluster", "member3")["status"])["conditions"]
    assert [condition["type"] for condition in after] == ["Ready", "CompleteAPIEnablements"]


def test_labels_and_annotations_of_a_cluster_are_stored(kubectl: Kubectl) -> None:
    kubectl("annotate", "cluster", "member3", "example.com/owner=shop")
    kubectl("label", "cluster", "member3", "tier=gold")
    shown = json.loads(kubectl("get", "cluster", "member3", "-o", "json", "--show-managed-fields"))
    metadata = shown["metadata"]
    assert metadata["annotations"]["example.com/owner"] == "shop"
    assert metadata["labels"]["tier"] == "gold"
    owners = {entry["manager"]: entry["fieldsV1"] for entry in metadata["managedFields"]}
    assert "f:tier" in owners["kubectl-label"]["f:metadata"]["f:labels"]
    assert "f:example.com/owner" in owners["kubectl-annotate"]["f:metadata"]["f:annotations"]
    kubectl("annotate", "cluster", "member3", "example.com/owner-")
    kubectl("label", "cluster", "member3", "tier-")
    assert "annotations" not in cast("dict[str, object]", kubectl.json("cluster", "member3")["metadata"])


def test_cluster_without_an_agent_is_deleted_at_once(kubectl: Kubectl) -> None:
    name = f"edge-{kubectl.namespace[:20]}"
    kubectl("create", "-f", "-", stdin=_cluster(name))
    # Nothing runs in the cluster, so kubectl's wait for the deletion ends at once.
    assert kubectl("delete", "cluster", name) == f'cluster.cluster.karmada.io "{name}" deleted\n'
    kubectl("get", "cluster", name, code=1)
    assert "NotFound" in kubectl.errors


def test_cluster_of_dead_agent_is_deleted_after_its_finalizer_is_removed(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    name = f"dead-{kubectl.namespace[:20]}"
    kubectl("create", "-f", "-", stdin=_cluster(name))
    kubectl("apply", "-f", "-", stdin=BOTH.replace("[member1, member2]", f"[{name}, member2]"))
    kubectl.until_true(
        lambda: kubectl("get", "work", "-n", f"karmada-es-{name}", "-o", "name") != "",
        lambda: kubectl("get", "rb", "-o", "yaml"),
    )
    with kubectl.watching(tmp_path, "clusters", name) as watched:
        kubectl.until_true(lambda: name in watched.read_text(), watched.read_text)
        kubectl("delete", "cluster", name, "--timeout=2s", code=1)
        assert "timed out waiting for the condition" in kubectl.errors
        kubectl.until(["NAME SCHEDULED FULLYAPPLIED", "web-deployment True True"], "rb")
        placed = kubectl("get", "rb", "web-deployment", "-o", "jsonpath={.spec.clusters[*].name}")
        assert placed == "member2"
        assert kubectl("get", "work", "-n", f"karmada-es-{name}", "-o", "name") == ""
        stamp = kubectl("get", "cluster", name, "-o", "jsonpath={.metadata.deletionTimestamp}")
        assert stamp.endswith("Z")
        kubectl("create", "-f", "-", stdin=_cluster(name), code=1)
        assert kubectl.errors.startswith("Error from server (AlreadyExists)")
        assert (
            f'object is being deleted: clusters.cluster.karmada.io "{name}" already exists' in kubectl.errors
        )
        without = '{"metadata":{"finalizers":null}}'
        kubectl("patch", "cluster", name, "--type=merge", "-p", without)
    kubectl("wait", "--for=delete", f"cluster/{name}", "--timeout=60s")
    kubectl("get", "namespace", f"karmada-es-{name}", code=1)


def _taints(kubectl: Kubectl, cluster: str) -> list[tuple[object, object]]:
    spec = cast("dict[str, list[Json]]", kubectl.json("cluster", cluster)["spec"])
    return [(taint["key"], taint["effect"]) for taint in spec.get("taints", [])]


_NETWORK_POLICY = """
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata: {name: network}
spec:
  targetClusters: {clusterNames: [member3]}
  addOnConditions: [{conditionType: NetworkReady, operator: NotIn, statusValues: ["True"]}]
  removeOnConditions: [{conditionType: NetworkReady, operator: In, statusValues: ["True"]}]
  taints: [{key: network, effect: NoSchedule}]
"""


def _cluster(name: str) -> str:
    """Return the manifest of a cluster in pull mode."""
    head = f"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\n"
    return f"{head}spec: {{syncMode: Pull}}\n"
