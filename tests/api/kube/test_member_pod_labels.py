"""Labels and annotations by which clients find the pods of a simulated member's workloads."""

from typing import cast

import httpx
import pytest

from events.json_values import Json, object_at, objects_at
from tests.api.kube.client import MEMBER, member
from tests.builders.manifests import pod_template

pytestmark = pytest.mark.virtual_time

JOBS = f"{MEMBER}/apis/batch/v1/namespaces/default/jobs"
PODS = f"{MEMBER}/api/v1/namespaces/default/pods"
UID = "batch.kubernetes.io/controller-uid"


def _template() -> Json:
    template = pod_template("web")
    metadata = {**object_at(template, "metadata"), "annotations": {"prometheus.io/scrape": "true"}}
    return {**template, "metadata": metadata}


async def _pods(client: httpx.AsyncClient, selector: str) -> list[Json]:
    answer = await client.get(PODS, params={"labelSelector": selector})
    return [object_at(pod, "metadata") for pod in objects_at(answer.json(), "items")]


async def _create_job(client: httpx.AsyncClient, name: str, **spec: object) -> Json:
    template = _template()
    template["spec"] = {**object_at(template, "spec"), "restartPolicy": "Never"}
    job = {"metadata": {"name": name}, "spec": {"template": template, **spec}}
    created = await client.post(JOBS, json=job)
    assert created.status_code == 201, created.text
    return cast("Json", created.json())


async def test_pods_of_a_job_are_found_by_its_name_and_its_selector() -> None:
    async with member() as client:
        job = await _create_job(client, "load")
        await _create_job(client, "other")
        by_name = await _pods(client, "job-name=load,batch.kubernetes.io/job-name=load")
        (shown,) = (
            item
            for item in objects_at((await client.get(JOBS)).json(), "items")
            if object_at(item, "metadata")["name"] == "load"
        )
        uid = object_at(shown, "metadata")["uid"]
        assert object_at(shown, "spec", "selector") == {"matchLabels": {UID: uid}}
        assert object_at(job, "spec", "selector") == {"matchLabels": {UID: uid}}
        assert object_at(shown, "spec", "template", "metadata", "labels")[UID] == uid
        by_selector = await _pods(client, f"{UID}={uid}")
    assert len(by_name) == 1
    assert by_selector == by_name
    assert object_at(by_name[0], "annotations") == {"prometheus.io/scrape": "true"}


async def test_replaced_job_keeps_its_pods() -> None:
    async with member() as client:
        await _create_job(client, "load")
        before = await _pods(client, "job-name=load")
        job = (await client.get(f"{JOBS}/load")).json()
        job["metadata"]["labels"] = {"a": "b"}
        replaced = await client.put(f"{JOBS}/load", json=job)
        assert replaced.status_code == 200, replaced.text
        assert replaced.json()["spec"] == job["spec"]
        after = await _pods(client, "job-name=load")
    assert [pod["name"] for pod in after] == [pod["name"] for pod in before]


async def test_job_with_a_selector_of_its_own_keeps_it() -> None:
    async with member() as client:
        selector = {"matchLabels": {"app": "web"}}
        job = await _create_job(client, "load", manualSelector=True, selector=selector)
        assert object_at(job, "spec", "selector") == selector
        assert await _pods(client, "job-name=load") == []


async def test_pods_of_a_stateful_set_have_their_name_and_index_as_labels() -> None:
    path = f"{MEMBER}/apis/apps/v1/namespaces/default/statefulsets"
    spec = {
        "replicas": 2,
        "serviceName": "db",
        "selector": {"matchLabels": object_at(_template(), "metadata", "labels")},
        "template": _template(),
    }
    async with member() as client:
        created = await client.post(path, json={"metadata": {"name": "db"}, "spec": spec})
        assert created.status_code == 201, created.text
        second = await _pods(client, "statefulset.kubernetes.io/pod-name=db-1,apps.kubernetes.io/pod-index=1")
    assert [pod["name"] for pod in second] == ["db-1"]
