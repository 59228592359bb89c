"""Deletions of one object and of collections: options in JSON and protobuf."""

import asyncio
from typing import cast

import httpx
import pytest

from events.json_values import Json
from tests.api.kube.client import MAPS, MERGE, POLICIES, api, create, metadata, watched
from tests.builders.manifests import config_map, deployment, policy


async def test_invalid_delete_options_delete_nothing() -> None:
    async with api() as (client, _):
        await create(client, config_map("one"))
        for wrong in (
            {"propagationPolicy": "Sideways"},
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            {"dryRun": ["Some"]},
        ):
            for path in (f"{MAPS}/one", MAPS):
                refused = await client.request("DELETE", path, json=wrong)
                assert (refused.status_code, refused.json()["reason"]) == (422, "Invalid")
        # A dry run can be requested in the body too, of a collection as of one object.
        for path in (f"{MAPS}/one", MAPS):
            assert (await client.request("DELETE", path, json={"dryRun": ["All"]})).status_code == 200
        assert (await client.get(f"{MAPS}/one")).status_code == 200


async def test_options_that_cannot_be_read_delete_nothing() -> None:
    async with api() as (client, _):
        await create(client, config_map("one"))
        for body, media_type, code in (
            (b'{"preconditions":[]}', "application/json", 400),
            (b'{"preconditions":{"uid":5}}', "application/json", 400),
            (b'{"dryRun":"All"}', "application/json", 400),
            (b'{"orphanDependents":"yes"}', "application/json", 400),
            (b"preconditions: x", "application/yaml", 400),
            (b'{"apiVersion":"v1","kind":"ConfigMap"}', "application/json", 400),
            (b'{"preconditions":{"uid":"other"}}', "text/plain", 415),
        ):
            for path in (f"{MAPS}/one", MAPS):
                headers = {"content-type": media_type}
                refused = await client.request("DELETE", path, content=body, headers=headers)
                assert refused.status_code == code, refused.text
        assert (await client.get(f"{MAPS}/one")).status_code == 200
        body = {"apiVersion": "apps/v1", "kind": "DeleteOptions", "preconditions": None, "unknown": 1}
        assert (await client.request("DELETE", f"{MAPS}/one", json=body)).status_code == 200


async def test_preconditions_hold_for_each_object_of_a_collection() -> None:
    async with api() as (client, _):
        await create(client, config_map("one"))
        answer = await client.request("DELETE", MAPS, json={"preconditions": {"uid": "another"}})
        assert (answer.status_code, answer.json()["reason"]) == (409, "Conflict")
        assert (await client.get(f"{MAPS}/one")).status_code == 200


async def test_collection_that_is_deleted_twice_at_once_is_gone() -> None:
    async with api() as (client, _):
        for number in range(5):
            await create(client, config_map(f"map-{number}"))
        answers = await asyncio.gather(*(client.delete(MAPS) for _ in range(3)))
        assert [answer.status_code for answer in answers] == [200, 200, 200]
        assert (await client.get(MAPS)).json()["items"] == []


async def test_collection_is_deleted_by_a_selector() -> None:
    async with api() as (client, _):
        for name, colour in (("one", "red"), ("two", "blue")):
            value = config_map(name)
            cast("Json", value["metadata"])["labels"] = {"colour": colour}
            await create(client, value)
        await client.request("DELETE", MAPS, params={"labelSelector": "colour=red"})
        left = (await client.get(MAPS)).json()["items"]
        assert [item["metadata"]["name"] for item in left] == ["two"]


def _field(number: int, value: bytes) -> bytes:
    """Return a protobuf field with a text or a nested message shorter than 128 bytes."""
    return bytes((number << 3 | 2, len(value))) + value


async def test_delete_options_are_read_from_protobuf() -> None:
    async with api() as (client, _):
        created = await create(client, config_map("one"))
        uid = str(cast("Json", created["metadata"])["uid"])

        async def delete(expected_uid: str) -> httpx.Response:
            options = _field(2, _field(1, expected_uid.encode())) + _field(4, b"Background")
            kind = _field(1, b"v1") + _field(2, b"DeleteOptions")
            body = b"k8s\0" + _field(1, kind) + _field(2, options)
            head = {"content-type": "application/vnd.kubernetes.protobuf"}
            return await client.request("DELETE", f"{MAPS}/one", content=body, headers=head)

        refused = await delete("another")
        assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")
        assert (await delete(uid)).json()["status"] == "Success"
        assert (await client.get(f"{MAPS}/one")).status_code == 404


async def test_malformed_protobuf_delete_options_are_refused() -> None:
    async with api() as (client, _):
        await create(client, config_map("one"))
        head = {"content-type": "application/vnd.kubernetes.protobuf"}
        for body in (b"k8s\0", b"k8s\0\xff", b"{}"):
            answer = await client.request("DELETE", f"{MAPS}/one", content=body, headers=head)
            assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")
        assert (await client.get(f"{MAPS}/one")).status_code == 200


APPLY = {"content-type": "application/apply-patch+yaml"}
TIME = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize("field", [{"deletionTimestamp": TIME}, {"deletionGracePeriodSeconds": 30}])
async def test_apply_with_a_time_of_deletion_does_not_delete_the_object(field: Json) -> None:
    async with api() as (client, services):
        await create(client, config_map("one", a="1"))
        before = services.log.last_number()
        value = {**config_map("one", a="1"), "metadata": {"name": "one", **field}}
        answer = await client.patch(f"{MAPS}/one?fieldManager=me&force=true", json=value, headers=APPLY)
        assert (answer.status_code, answer.json()["reason"]) == (422, "Invalid")
        assert "field is immutable" in answer.json()["message"]
        assert services.log.last_number() == before


async def test_object_applied_from_an_export_of_a_terminating_one_is_not_terminating() -> None:
    async with api() as (client, _):
        exported = {**config_map("one"), "metadata": {"name": "one", "deletionTimestamp": TIME}}
        answer = await client.patch(f"{MAPS}/one?fieldManager=me", json=exported, headers=APPLY)
        assert answer.status_code == 201
        assert "deletionTimestamp" not in metadata(answer)
        assert "deletionTimestamp" not in metadata(await client.get(f"{MAPS}/one"))


async def test_mark_of_a_deletion_is_a_new_generation() -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    async with api() as (client, services):

        async def change(fields: Json) -> object:
            answer = await client.patch(f"{path}/web", json=fields, headers=MERGE)
            return metadata(answer)["generation"]

        assert (await client.post(path, json=deployment("web"))).status_code == 201
        assert await change({"metadata": {"finalizers": ["example.com/held"]}}) == 1
        since = services.log.last_number()
        for _ in range(2):
            assert metadata(await client.delete(f"{path}/web"))["generation"] == 2
        lines = await watched(services, f"{path}?watch=true&resourceVersion={since}", 1)
        assert cast("Json", lines[0]["object"])["metadata"] == metadata(await client.get(f"{path}/web"))
        assert metadata(await client.get(f"{path}/web"))["generation"] == 2
        assert await change({"metadata": {"labels": {"a": "b"}}}) == 2
        assert await change({"spec": {"replicas": 5}}) == 3
        assert metadata(await client.get(f"{path}/web"))["generation"] == 3


async def test_terminating_policy_is_deleted_with_its_last_finalizer_but_that_of_karmada() -> None:
    async with api() as (client, _):
        value = policy("p")
        cast("Json", value["metadata"])["finalizers"] = ["example.com/held"]
        both = cast("list[str]", metadata(await client.post(POLICIES, json=value))["finalizers"])
        await client.delete(f"{POLICIES}/p")
        left = {"metadata": {"finalizers": [name for name in both if name != "example.com/held"]}}
        assert (await client.patch(f"{POLICIES}/p", json=left, headers=MERGE)).status_code == 200
        assert (await client.get(f"{POLICIES}/p")).status_code == 404
