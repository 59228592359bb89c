"""Scale and status subresources: replace, patch, apply, ownership of replicas, and invalid counts."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest

from engine.kubeapi.patching import managed_fields
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.api.kube.client import api
from tests.builders.manifests import manifest
from tests.kube.oracle.objects import deployment

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SCALE = f"{DEPLOYMENTS}/one/scale"
APPLY = {"content-type": "application/apply-patch+yaml"}
MERGE = {"content-type": "application/merge-patch+json"}


@asynccontextmanager
async def a_deployment() -> AsyncGenerator[httpx.AsyncClient]:
    async with api() as (client, _):
        applied = await client.patch(
            f"{DEPLOYMENTS}/one?fieldManager=me", json=deployment("one"), headers=APPLY
        )
        assert applied.status_code == 201
        yield client


def scale(replicas: object, **metadata: str) -> Json:
    head: Json = manifest("autoscaling/v1", "Scale", "one", metadata=metadata)
    return {**head, "spec": {"replicas": replicas}}


def owners(value: Json) -> dict[object, bool]:
    """Return the managers, and whether each owns the replicas."""
    entries = managed_fields.entries(KubeObject(value))
    return {entry["manager"]: "f:replicas" in str(entry["fieldsV1"]) for entry in entries}


async def test_apply_of_owned_replicas_through_the_scale_is_a_conflict() -> None:
    async with a_deployment() as client:
        late = await client.patch(f"{SCALE}?fieldManager=scaler", json=scale(5), headers=APPLY)
        assert late.status_code == 409
        assert late.json()["message"] == 'Apply failed with 1 conflict: conflict with "me": .spec.replicas'
        forced = await client.patch(f"{SCALE}?fieldManager=scaler&force=true", json=scale(5), headers=APPLY)
        assert (forced.status_code, forced.json()["spec"]) == (200, {"replicas": 5})
        stands = (await client.get(f"{DEPLOYMENTS}/one")).json()
        assert stands["spec"]["replicas"] == 5
        assert owners(stands) == {"me": False, "scaler": True}


async def test_scale_patch_takes_ownership_of_the_replicas() -> None:
    async with a_deployment() as client:
        answer = await client.patch(
            f"{SCALE}?fieldManager=scaler", json={"spec": {"replicas": 3}}, headers=MERGE
        )
        assert answer.json()["spec"] == {"replicas": 3}
        assert owners((await client.get(f"{DEPLOYMENTS}/one")).json()) == {"me": False, "scaler": True}


async def test_duplicate_fields_of_a_scale_are_reported() -> None:
    text = json.dumps(scale(3)).replace('"replicas": 3', '"replicas": 3, "replicas": 4')
    async with a_deployment() as client:
        strict = await client.put(f"{SCALE}?fieldValidation=Strict", content=text)
        assert strict.status_code == 400
        assert 'strict decoding error: duplicate field "spec.replicas"' in strict.json()["message"]
        answer = await client.put(SCALE, content=text)
        assert (answer.status_code, answer.json()["spec"]) == (200, {"replicas": 4})
        assert answer.headers.get_list("warning") == ['299 - "duplicate field \\"spec.replicas\\""']


@pytest.mark.parametrize(
    ("body", "code", "why"),
    [
        (scale(-1), 422, 'Scale.autoscaling "one" is invalid: spec.replicas: Invalid value: -1'),
        (scale("x"), 400, "Go struct field ScaleSpec.spec.replicas of type int32"),
        (scale(1, resourceVersion="99999999"), 409, "the object has been modified"),
        ({**scale(1), "metadata": {"name": "two"}}, 400, "does not match the name on the URL"),
        (deployment("one"), 400, "converting (v1.Deployment) to (autoscaling.Scale): unknown conversion"),
    ],
)
async def test_invalid_scale_changes_nothing(body: Json, code: int, why: str) -> None:
    async with a_deployment() as client:
        answer = await client.put(SCALE, json=body)
        assert answer.status_code == code
        assert why in answer.json()["message"]
        assert (await client.get(SCALE)).json()["spec"] == {"replicas": 2}


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (
            {"replicas": 2, "readyReplicas": 3},
            "status.readyReplicas: Invalid value: 3: cannot be greater than status",
        ),
        ({"replicas": -1}, "status.replicas: Invalid value: -1: must be greater than or equal to 0"),
        (
            {"collisionCount": -1},
            "status.collisionCount: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            {"replicas": 2, "availableReplicas": 1},
            "status.availableReplicas: Invalid value: 1: cannot be greater",
        ),
    ],
)
async def test_inconsistent_status_counts_are_invalid(status: Json, why: str) -> None:
    async with a_deployment() as client:
        answer = await client.patch(f"{DEPLOYMENTS}/one/status", json={"status": status}, headers=MERGE)
        assert (answer.status_code, answer.json()["reason"]) == (422, "Invalid")
        assert why in answer.json()["message"]
