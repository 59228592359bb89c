"""Null fields of written objects: absent, as in Kubernetes. Templates of Helm charts and clients in Go have many."""

import copy
from typing import Any

import httpx
import pytest

from events.json_values import Json, as_list, as_object
from tests.api.kube.client import api

APPLY = {"content-type": "application/apply-patch+yaml"}

HEAD = {"name": "nulls", "labels": None, "annotations": None, "finalizers": None, "ownerReferences": None}

OBJECTS: dict[str, Json] = {
    "/apis/apps/v1/namespaces/default/deployments": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {
            "replicas": None,
            "selector": {"matchLabels": {"app": "nulls"}, "matchExpressions": None},
            "template": {
                "metadata": {"labels": {"app": "nulls"}, "annotations": None},
                "spec": {
                    "nodeSelector": None,
                    "tolerations": None,
                    "containers": [{"name": "c", "image": "nginx", "env": None, "resources": None}],
                },
            },
        },
    },
    "/api/v1/namespaces/default/configmaps": {"apiVersion": "v1", "kind": "ConfigMap", "data": None},
    "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies": {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "spec": {
            "dependentOverrides": None,
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": None}],
            "placement": {
                "clusterAffinity": {"clusterNames": None},
                "clusterTolerations": None,
                "replicaScheduling": None,
            },
        },
    },
    "/apis/policy.karmada.io/v1alpha1/namespaces/default/overridepolicies": {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "spec": {
            "resourceSelectors": None,
            "overrideRules": [
                {
                    "targetCluster": None,
                    "overriders": {
                        "imageOverrider": None,
                        "plaintext": [{"path": "/data/a", "operator": "remove", "value": None}],
                    },
                }
            ],
        },
    },
    "/apis/apps.karmada.io/v1alpha1/workloadrebalancers": {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "spec": {
            "ttlSecondsAfterFinished": None,
            "workloads": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "nulls", "namespace": "default"},
                {"apiVersion": "v1", "kind": "Namespace", "name": "default", "namespace": None},
            ],
        },
    },
    "/apis/cluster.karmada.io/v1alpha1/clusters": {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "spec": {"syncMode": "Push", "taints": None, "zones": None, "secretRef": None},
    },
}


def nulls_in(value: object, path: str = "") -> list[str]:
    below = as_object(value) or dict(enumerate(as_list(value) or ()))
    paths = [null_path for name, item in below.items() for null_path in nulls_in(item, f"{path}.{name}")]
    return [path] if value is None else paths


def checked(answer: httpx.Response, code: int = 200) -> dict[str, Any]:
    assert answer.status_code == code, answer.text
    assert nulls_in(answer.json()) == []
    return answer.json()


@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.rpartition("/")[2])
async def test_null_fields_are_absent(path: str) -> None:
    value = {**copy.deepcopy(OBJECTS[path]), "metadata": dict(HEAD)}
    async with api() as (client, _):
        made = checked(await client.post(path, json=value), 201)
        kept = {name: made["metadata"].get(name) for name in ("labels", "resourceVersion")}
        replaced = {**value, "metadata": {**HEAD, **kept}}
        same = checked(await client.put(f"{path}/nulls", json=replaced))
        assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        query = {"fieldManager": "chart", "force": "true"}
        checked(await client.patch(f"{path}/nulls", params=query, json=value, headers=APPLY))
        other = {**value, "metadata": {**HEAD, "name": "applied"}}
        checked(await client.patch(f"{path}/applied", params=query, json=other, headers=APPLY), 201)


async def test_null_text_of_a_map_is_empty() -> None:
    value = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "nulls", "labels": {"a": None}},
        "data": {"KEY": None, "other": "1"},
    }
    async with api() as (client, _):
        made = checked(await client.post("/api/v1/namespaces/default/configmaps", json=value), 201)
    assert made["metadata"]["labels"] == {"a": ""}
    assert made["data"] == {"KEY": "", "other": "1"}


async def test_custom_resources_keep_null_where_their_schema_allows_it() -> None:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "kept": {"type": "string", "nullable": True},
                    "dropped": {"type": "string"},
                },
            }
        },
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com", "annotations": None},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }
    value = {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": dict(HEAD),
        "spec": {"kept": None, "dropped": None},
    }
    async with api() as (client, services):
        made = await client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json=definition)
        assert made.status_code == 201, made.text
        await services.views.wait_folded(services.log.last_number())
        gadget = await client.post("/apis/example.com/v1/namespaces/default/gadgets", json=value)
        assert gadget.status_code == 201, gadget.text
    assert gadget.json()["spec"] == {"kept": None}
    assert nulls_in(gadget.json()["metadata"]) == []
