"""Search for objects of members by ResourceRegistries."""

import json

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
    kubectl("apply", "-f", "-", given=json.dumps(registry))
    assert kubectl.errors == ""


def _found(kubectl: Kubectl, path: str) -> list[object]:
    items = objects_at(json.loads(kubectl("get", "--raw", f"{CACHE}{path}")), "items")
    return [at(each, "metadata", "annotations", SOURCE) for each in items]


def test_objects_of_members_are_found_as_far_as_registries_select_them(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=BOTH)
    for name in ("member1", "member2"):
        kubectl.on(name).until_true(
            lambda name=name: "web" in kubectl.on(name)("get", "deploy"), lambda: kubectl("get", "rb")
        )
    path = f"/apis/apps/v1/namespaces/{kubectl.namespace}/deployments"
    assert _found(kubectl, path) == []
    _register(kubectl, {"clusterNames": ["member1", "member2"]})
    assert _found(kubectl, path) == ["member1", "member2"]
    assert _found(kubectl, f"{path}?labelSelector=app=other") == []
    assert _found(kubectl, "/api/v1/pods") == []
    _register(kubectl, {"exclude": ["member1"]}, namespace=kubectl.namespace)
    assert _found(kubectl, "/apis/apps/v1/deployments") == ["member2"]
    kubectl("create", "--raw", f"{CACHE}/apis/apps/v1/deployments", "-f", "-", given="{}", code=1)
    kubectl("get", "--raw", f"{CACHE}/apis/apps/v1/ships", code=1)
    kubectl("delete", "resourceregistry", "deployments")
    assert _found(kubectl, path) == []
