"""Custom kinds of other API groups with the names of kinds that the engine or Kubernetes has."""

import httpx
import pytest

from events.json_values import Json, objects_at
from tests.api.kube.client import api
from tests.builders.manifests import definition, manifest

GROUP = "example.io"
MERGE = {"content-type": "application/merge-patch+json"}
TWICE = [{"key": "a", "effect": "NoSchedule"}] * 2


async def defined(client: httpx.AsyncClient, kind: str) -> str:
    """Define a custom kind; return the path of its objects in the namespace default."""
    plural = f"{kind.lower()}s"
    kinds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    value = definition(plural, kind, GROUP)
    (served,) = objects_at(value, "spec", "versions")
    served["subresources"] = {"status": {}}
    made = await client.post(kinds, json=value)
    assert made.status_code == 201, made.text
    return f"/apis/{GROUP}/v1/namespaces/default/{plural}"


def custom(kind: str, metadata: Json | None = None, **fields: object) -> Json:
    return manifest(f"{GROUP}/v1", kind, "one", "default", metadata=metadata, **fields)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Cluster", {"paused": False, "taints": TWICE}),
        ("ClusterTaintPolicy", {"taints": TWICE}),
        ("CronFederatedHPA", {"rules": [{"schedule": "daily"}]}),
        ("CustomResourceDefinition", {"scope": "any"}),
        ("FederatedResourceQuota", {"overall": {"cpu": "much"}}),
        ("Namespace", {"sku": "Basic"}),
        ("OverridePolicy", {"overriders": {"path": "x"}, "overrideRules": [{"x": 1}]}),
        ("PropagationPolicy", {"placement": {"spreadConstraints": [{"spreadByField": "cluster"}] * 2}}),
        ("WorkloadRebalancer", {"workloads": "any"}),
    ],
)
async def test_custom_kind_has_no_rules_and_fields_of_a_kind_with_its_name(kind: str, spec: Json) -> None:
    async with api() as (client, _):
        path = await defined(client, kind)
        made = await client.post(path, json=custom(kind, spec=spec))
        assert made.status_code == 201, made.text

        for shown in (made.json(), (await client.get(f"{path}/one")).json()):
            assert (shown["spec"], shown.get("status")) == (spec, None)
            assert {"labels", "finalizers"}.isdisjoint(shown["metadata"])


async def test_replacement_of_a_custom_cluster_needs_a_version() -> None:
    async with api() as (client, _):
        path = await defined(client, "Cluster")
        await client.post(path, json=custom("Cluster", spec={}))
        replaced = await client.put(f"{path}/one", json=custom("Cluster", spec={"paused": True}))
        assert replaced.status_code == 422, replaced.text


async def test_refused_deletion_of_a_custom_cluster_names_its_own_kind() -> None:
    async with api() as (client, _):
        path = await defined(client, "Cluster")
        labels = {"resourcetemplate.karmada.io/deletion-protected": "Always"}
        await client.post(path, json=custom("Cluster", metadata={"labels": labels}, spec={}))
        refused = await client.delete(f"{path}/one")
        assert refused.status_code == 403
        assert "clusters.cluster.karmada.io" not in refused.json()["message"]


@pytest.mark.parametrize("kind", ["Pod", "WorkloadRebalancer", "FederatedResourceQuota"])
async def test_status_of_a_custom_kind_is_shown_as_written(kind: str) -> None:
    async with api() as (client, _):
        path = await defined(client, kind)
        await client.post(path, json=custom(kind, spec={"overall": {"cpu": "1"}}))
        status = {"members": [1], "claimed": {"cpu": 1}}
        written = await client.patch(f"{path}/one/status", json={"status": status}, headers=MERGE)
        assert written.status_code == 200, written.text
        assert "warning" not in written.headers

        assert (await client.get(f"{path}/one")).json()["status"] == status


async def test_custom_secret_contains_no_token_of_a_service_account() -> None:
    async with api() as (client, _):
        path = await defined(client, "Secret")
        marks = {"kubernetes.io/service-account.name": "default", "reballast.io/member": "member1"}
        secret = custom("Secret", metadata={"annotations": marks}, type="kubernetes.io/service-account-token")
        await client.post(path, json=secret)
        assert "data" not in (await client.get(f"{path}/one")).json()
