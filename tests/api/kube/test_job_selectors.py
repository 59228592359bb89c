"""Selectors of Jobs in the control plane: derived as by Kubernetes, never stored or propagated."""

import json
from typing import cast

import httpx

from events.json_values import Json, object_at
from tests.api.kube.client import MERGE, api
from tests.builders.manifests import manifest

JOBS = "/apis/batch/v1/namespaces/default/jobs"
LOAD = f"{JOBS}/load"
UID = "batch.kubernetes.io/controller-uid"


def _job(**spec: object) -> Json:
    containers = [{"name": "main", "image": "busybox"}]
    template = {
        "metadata": {"labels": {"app": "load"}},
        "spec": {"restartPolicy": "Never", "containers": containers},
    }
    return manifest("batch/v1", "Job", "load", "default", spec={"template": template, **spec})


def _read(answer: httpx.Response, code: int = 200) -> Json:
    assert answer.status_code == code, answer.text
    return cast("Json", answer.json())


async def test_job_has_a_selector_that_is_not_recorded() -> None:
    async with api() as (client, services):
        created = _read(await client.post(JOBS, json=_job()), 201)
        read = _read(await client.get(LOAD))
        records = await services.log.read_all(0, 100)
    uid = object_at(read, "metadata")["uid"]
    assert read == created
    assert object_at(read, "spec", "selector") == {"matchLabels": {UID: uid}}
    assert object_at(read, "spec", "template", "metadata", "labels") == {
        "app": "load",
        UID: uid,
        "batch.kubernetes.io/job-name": "load",
        "controller-uid": uid,
        "job-name": "load",
    }
    (recorded,) = (json.loads(record.value)["manifest"] for record in records if record.topic == "specs")
    assert recorded["spec"] == _job()["spec"]


async def test_writing_a_job_back_changes_only_what_the_client_changed() -> None:
    async with api() as (client, _services):
        read = _read(await client.post(JOBS, json=_job()), 201)
        assert _read(await client.put(LOAD, json=read)) == read
        patched = _read(await client.patch(LOAD, json={"spec": {"parallelism": 2}}, headers=MERGE))
        applied = _read(
            await client.patch(
                LOAD,
                json=_job(),
                headers={"content-type": "application/apply-patch+yaml"},
                params={"fieldManager": "test"},
            )
        )
    assert object_at(patched, "spec") == {**object_at(read, "spec"), "parallelism": 2}
    assert object_at(patched, "metadata")["generation"] == 2
    assert object_at(applied, "spec") == object_at(patched, "spec")


async def test_job_with_a_selector_of_its_own_keeps_it() -> None:
    selector = {"matchLabels": {"app": "load"}}
    async with api() as (client, _services):
        created = _read(await client.post(JOBS, json=_job(manualSelector=True, selector=selector)), 201)
    assert object_at(created, "spec", "selector") == selector
    assert object_at(created, "spec", "template", "metadata", "labels") == {"app": "load"}
