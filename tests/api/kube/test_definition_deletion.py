"""Deletion of definitions of custom kinds: their objects are deleted first."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx

from tests.api.kube.client import MERGE, api
from tests.builders.manifests import definition, manifest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ONE = f"{DEFINITIONS}/trials.example.io"
TRIALS = "/apis/example.io/v1/namespaces/default/trials"
ALL = "/apis/example.io/v1/trials"


@asynccontextmanager
async def trials(count: int) -> AsyncGenerator[httpx.AsyncClient]:
    """Yield a client of a server with the kinds Trial and Other: ``count`` objects of the first, one of the other."""
    async with api() as (client, _):
        for plural, kind, objects in (("trials", "Trial", count), ("others", "Other", 1)):
            made = await client.post(DEFINITIONS, json=definition(plural, kind))
            assert made.status_code == 201, made.text
            path = f"/apis/example.io/v1/namespaces/default/{plural}"
            for number in range(objects):
                value = manifest("example.io/v1", kind, f"one-{number}", "default")
                assert (await client.post(path, json=value)).status_code == 201
        yield client


async def names(client: httpx.AsyncClient, path: str = ALL) -> list[str]:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return [item["metadata"]["name"] for item in answer.json()["items"]]


async def test_objects_are_deleted_with_their_definition() -> None:
    async with trials(300) as client:
        assert (await client.delete(ONE, params={"dryRun": "All"})).status_code == 200
        assert len(await names(client)) == 300
        assert (await client.delete(ONE)).status_code == 200
        assert (await client.get(ALL)).status_code == 404
        assert await names(client, "/apis/example.io/v1/others") == ["one-0"]

        assert (await client.post(DEFINITIONS, json=definition("trials", "Trial"))).status_code == 201
        assert await names(client) == []


async def test_refused_deletion_of_a_definition_deletes_no_object() -> None:
    async with trials(1) as client:
        refused = await client.request("DELETE", ONE, json={"preconditions": {"uid": "another"}})
        assert refused.status_code == 409
        assert await names(client) == ["one-0"]


async def test_definition_stays_while_its_objects_have_finalizers() -> None:
    async with trials(2) as client:
        finalizers = {"metadata": {"finalizers": ["example.io/wait"]}}
        await client.patch(f"{TRIALS}/one-1", json=finalizers, headers=MERGE)
        refused = await client.delete(ONE)
        assert refused.status_code == 409
        assert "objects of its kind still exist (1); remove their finalizers" in refused.json()["message"]
        assert await names(client) == ["one-1"]

        finalizers["metadata"]["finalizers"] = []
        await client.patch(f"{TRIALS}/one-1", json=finalizers, headers=MERGE)
        assert (await client.delete(ONE)).status_code == 200


async def test_definition_stays_while_an_object_is_protected() -> None:
    async with trials(1) as client:
        labels = {"resourcetemplate.karmada.io/deletion-protected": "Always"}
        await client.patch(f"{TRIALS}/one-0", json={"metadata": {"labels": labels}}, headers=MERGE)
        refused = await client.delete(ONE)
        assert (refused.status_code, await names(client)) == (403, ["one-0"])
        assert (await client.get(ONE)).status_code == 200


async def test_definition_of_a_built_in_kind_has_no_objects() -> None:
    async with api() as (client, _):
        group = "policy.karmada.io"
        await client.post(DEFINITIONS, json=definition("propagationpolicies", "PropagationPolicy", group))
        policies = f"/apis/{group}/v1alpha1/namespaces/default/propagationpolicies"
        policy = manifest(
            f"{group}/v1alpha1",
            "PropagationPolicy",
            "one",
            "default",
            spec={"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}]},
        )
        assert (await client.post(policies, json=policy)).status_code == 201
        assert (await client.delete(f"{DEFINITIONS}/propagationpolicies.{group}")).status_code == 200
        assert await names(client, policies) == ["one"]
