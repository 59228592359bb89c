"""Objects of a simulated member have all required fields: typed clients reject objects that lack one."""

import httpx
import pytest

from engine.kubeapi.admission import schema_validation
from engine.kubeapi.schema import resources
from events.json_values import Json, object_at, objects_at
from tests.api.kube.client import MEMBER, member
from tests.builders import manifests

pytestmark = pytest.mark.virtual_time

POD: Json = {"metadata": {"name": "single"}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}


async def _faults(client: httpx.AsyncClient, resource: resources.Resource) -> list[str]:
    root = "api" if "/" not in resource.api_version else "apis"
    answer = await client.get(f"{MEMBER}/{root}/{resource.api_version}/{resource.plural}")
    values = objects_at(answer.json(), "items") if answer.is_success else []
    return [
        f"{resource.qualified} {object_at(value, 'metadata')['name']}: {cause.text}"
        for value in values
        for cause in schema_validation.value_faults(value, resource.schema)
        # As in Kubernetes, the time is null in Events whose reporter writes the older API.
        if not cause.text.startswith("eventTime:")
    ]


async def test_objects_have_all_required_fields() -> None:
    namespace = f"{MEMBER}/apis/apps/v1/namespaces/default"
    async with member() as client:
        await client.post(f"{namespace}/deployments", json=manifests.deployment("web", 2))
        created = await client.post(f"{MEMBER}/api/v1/namespaces/default/pods", json=POD)
        assert created.status_code == 201, created.text
        faults = [
            fault for resource in resources.built_in().resources for fault in await _faults(client, resource)
        ]
    assert faults == []


async def test_responses_to_writes_have_the_fields_that_reads_have() -> None:
    namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}
    service: Json = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    apply = {"content-type": "application/apply-patch+yaml"}
    namespaces = f"{MEMBER}/api/v1/namespaces"
    async with member() as client:
        for path, value in (
            (f"{namespaces}/web", namespace),
            (f"{namespaces}/web/services/web", service),
        ):
            specs: list[Json] = []
            for query in ("", "&dryRun=All"):
                answer = await client.patch(f"{path}?fieldManager=flux{query}", json=value, headers=apply)
                assert answer.is_success, answer.text
                specs.append(object_at(answer.json(), "spec"))
            read = object_at((await client.get(path)).json(), "spec")
            assert specs == [read, read]
            assert read


async def test_replication_controller_counts_the_pods_with_its_labels() -> None:
    path = f"{MEMBER}/api/v1/namespaces/default/replicationcontrollers"
    spec: Json = {"replicas": 2, "template": manifests.pod_template("web")}
    async with member() as client:
        created = await client.post(path, json={"metadata": {"name": "web"}, "spec": spec})
        assert created.status_code == 201, created.text
        status = (await client.get(f"{path}/web")).json()["status"]
    assert (status["replicas"], status["fullyLabeledReplicas"]) == (2, 2)
    assert "updatedReplicas" not in status


async def test_pods_of_workloads_show_their_quality_of_service() -> None:
    async with member() as client:
        path = f"{MEMBER}/apis/apps/v1/namespaces/default/deployments"
        created = await client.post(path, json=manifests.deployment("web", 1, requests={"cpu": "1"}))
        assert created.is_success, created.text
        pods = (await client.get(f"{MEMBER}/api/v1/namespaces/default/pods")).json()
        (pod,) = objects_at(pods, "items")
        assert object_at(pod, "status")["qosClass"] == "Burstable"


async def test_definition_accepts_its_default_names_in_the_response_to_its_creation() -> None:
    value = manifests.definition("widgets", "Widget")
    async with member() as client:
        path = f"{MEMBER}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        created = (await client.post(path, json=value)).json()
    accepted = object_at(created, "status", "acceptedNames")
    assert accepted == object_at(created, "spec", "names")
    assert accepted["listKind"] == "WidgetList"
