"""Search for objects of members by ResourceRegistries."""

import json
from pathlib import Path

from events.json_values import Json, at, objects_at
from tests.builders.manifests import manifest
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH

CACHE = "/apis/search.karmada.io/v1alpha1/search/cache"
SOURCE = "resource.karmada.io/cached-from-cluster"


def _register(kubectl: Kubectl, target: Json, **selector: str) -> None:
    chosen = {"apiVersion": "apps/v1", "kind": "Deployment", **selector}
    spec: Json = {"targetCluster": target, "resourceSelectors": [chosen]}
    registry = manifest("search.karmada.io/v1alpha1", "ResourceRegistry", "deployments", spec=spec)
    kubectl("apply", "-f", "-", stdin=json.dumps(registry))
    assert kubectl.errors == ""


def _sources(kubectl: Kubectl, path: str) -> list[object]:
    items = objects_at(json.loads(kubectl("get", "--raw", f"{CACHE}{path}")), "items")
    return [at(item, "metadata", "annotations", SOURCE) for item in items]


def test_objects_of_members_are_found_as_far_as_registries_select_them(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    for name in ("member1", "member2"):
        kubectl.on(name).until_true(
            lambda name=name: "web" in kubectl.on(name)("get", "deploy"), lambda: kubectl("get", "rb")
        )
    path = f"/apis/apps/v1/namespaces/{kubectl.namespace}/deployments"
    assert _sources(kubectl, path) == []
    _register(kubectl, {"clusterNames": ["member1", "member2"]})
    assert _sources(kubectl, path) == ["member1", "member2"]
    assert _sources(kubectl, f"{path}?labelSelector=app=other") == []
    assert _sources(kubectl, "/api/v1/pods") == []
    _register(kubectl, {"exclude": ["member1"]}, namespace=kubectl.namespace)
    assert _sources(kubectl, "/apis/apps/v1/deployments") == ["member2"]
    kubectl("create", "--raw", f"{CACHE}/apis/apps/v1/deployments", "-f", "-", stdin="{}", code=1)
    kubectl("get", "--raw", f"{CACHE}/apis/apps/v1/ships", code=1)
    kubectl("delete", "resourceregistry", "deployments")
    assert _sources(kubectl, path) == []


def test_one_api_reads_and_writes_the_objects_of_all_members(kubectl: Kubectl, tmp_path: Path) -> None:
    host = kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
    proxy = f"--server={host}/apis/search.karmada.io/v1alpha1/proxying/karmada/proxy"
    members = {name: kubectl.on(name) for name in ("member1", "member2")}
    members["member1"].until_true(lambda: kubectl.namespace in members["member1"]("get", "ns"), lambda: "")
    members["member1"]("create", "deployment", "one", "--image=nginx")
    members["member2"]("create", "deployment", "two", "--image=nginx")
    assert kubectl("get", "deployments", "-o", "name", proxy) == ""
    _register(kubectl, {"clusterNames": ["member1", "member2"]}, namespace=kubectl.namespace)
    cluster = "{.metadata.annotations.resource\\.karmada\\.io/cached-from-cluster}"
    shown = f"jsonpath={{range .items[*]}}{{.metadata.name}} in {cluster};{{end}}"
    assert kubectl("get", "deployments", "-o", shown, proxy) == "one in member1;two in member2;"
    assert kubectl("get", "deployments", "-o", "name", "--chunk-size=1", proxy).split() == [
        "deployment.apps/one",
        "deployment.apps/two",
    ]
    with kubectl.watching(tmp_path, "deployments", "-o", "name", proxy) as printed:
        kubectl.until_true(lambda: printed.read_text().count("two") == 1, printed.read_text)
        kubectl("label", "deployment", "two", "tier=web", proxy)
        kubectl.until_true(lambda: printed.read_text().count("two") > 1, printed.read_text)
    two = kubectl("get", "deployment", "two", "-o", "json", proxy)
    kubectl("replace", "-f", "-", proxy, stdin=two.replace('"tier": "web"', '"tier": "db"'))
    written = members["member2"]("get", "deployment", "two", "-o", "json")
    assert at(json.loads(written), "metadata", "labels", "tier") == "db"
    assert SOURCE not in written
    kubectl("replace", "-f", "-", proxy, stdin=two, code=1)
    assert "(Conflict)" in kubectl.errors
    kubectl("create", "deployment", "new", "--image=nginx", proxy, code=1)
    assert "not allow this method" in kubectl.errors
    kubectl("delete", "deployment", "one", proxy)
    assert members["member1"]("get", "deployments") == ""
    assert "member1" in kubectl("get", "clusters", proxy)
    members["member2"]("delete", "deployment", "two")
