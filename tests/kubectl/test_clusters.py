"""Cluster objects: how each member is reached without the control plane's own token, and what it says of itself."""

import base64
import json
import ssl
from typing import cast

import httpx

from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH


def _client(kubectl: Kubectl, reference: str) -> httpx.Client:
    """A client made of what a Cluster object tells, as the reference makes its own; nothing else is known to it."""
    cluster = kubectl.json("cluster", "member1")
    spec = cast("dict[str, object]", cluster["spec"])
    secret = cast("dict[str, str]", spec[reference])
    held = kubectl.json("secret", secret["name"], "--namespace", secret["namespace"])
    data = {name: base64.b64decode(text) for name, text in cast("dict[str, str]", held["data"]).items()}
    trusted = ssl.create_default_context(cadata=data["caBundle"].decode())
    headers = {"authorization": f"Bearer {data['token'].decode()}"}
    return httpx.Client(base_url=str(spec["apiEndpoint"]), verify=trusted, headers=headers)


def test_a_member_is_reached_by_its_secret_alone(kubectl: Kubectl) -> None:
    kubectl.until_true(
        lambda: bool(kubectl("get", "cluster", "member1", "-o", "jsonpath={.spec.secretRef.name}")),
        lambda: kubectl("get", "cluster", "member1", "-o", "yaml"),
    )
    kubectl("apply", "-f", "-", given=BOTH)
    kubectl.on("member1").until(["NAME READY UP-TO-DATE AVAILABLE", "web 2/2 2 2"], "deploy")
    for reference in ("secretRef", "impersonatorSecretRef"):
        with _client(kubectl, reference) as client:
            listed = client.get(f"/apis/apps/v1/namespaces/{kubectl.namespace}/deployments").json()
            assert [item["spec"]["replicas"] for item in listed["items"]] == [2]
            assert client.get("/version").json()["major"] == "1"
            # It opens this member, and nothing else.
            root = str(client.base_url).partition("/apis/")[0]
            path = str(client.base_url).replace("member1", "member2").rstrip("/")
            for closed in (
                f"{root}/api/v1/namespaces",
                f"{path}/api/v1/pods",
                f"{root}/apis/apps/v1/deployments",
            ):
                assert client.get(closed).status_code == 403


def test_a_cluster_tells_what_it_is(kubectl: Kubectl) -> None:
    status = cast("dict[str, object]", kubectl.json("cluster", "member1")["status"])
    assert status["kubernetesVersion"] == "v1.36.2"
    assert status["nodeSummary"] == {"totalNum": 100, "readyNum": 100}
    enabled = {each["groupVersion"] for each in cast("list[dict[str, str]]", status["apiEnablements"])}
    assert {"v1", "apps/v1", "batch/v1"} <= enabled
    conditions = cast("list[dict[str, str]]", status["conditions"])
    assert [(each["type"], each["status"], each["reason"]) for each in conditions] == [
        ("Ready", "True", "ClusterReady"),
        ("CompleteAPIEnablements", "True", "Complete"),
    ]
    for kind in ("Ready", "CompleteAPIEnablements"):
        waited = kubectl("wait", f"--for=condition={kind}", "cluster/member1", "--timeout=60s")
        assert waited == "cluster.cluster.karmada.io/member1 condition met\n"
    summary = cast("dict[str, dict[str, str]]", status["resourceSummary"])
    assert summary["allocatable"]["pods"] == "11000"
    assert kubectl.table("clusters")[:2] == ["NAME VERSION MODE READY", "member1 v1.36.2 Push True"]
    wide = kubectl.table("clusters", "-o", "wide")[0]
    assert wide == "NAME VERSION MODE READY ZONES REGION PROVIDER API-ENDPOINT PROXY-URL"


def test_what_people_write_of_a_cluster_is_kept(kubectl: Kubectl) -> None:
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
