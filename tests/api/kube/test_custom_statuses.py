"""The status of custom resources: its own subresource if the kind has one, otherwise a field as any other.

Controllers of Argo Rollouts and Argo CD, for example, write the status of kinds without the subresource.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import httpx
import pytest

from events.json_values import Json, object_at
from tests.api.kube.client import MERGE, api, version
from tests.builders.manifests import definition, manifest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TRIALS = "/apis/example.io/v1/namespaces/default/trials"
ONE = f"{TRIALS}/one"
APPLY = {"content-type": "application/apply-patch+yaml"}
STATUS: Json = {"type": "object", "required": ["phase"], "properties": {"phase": {"type": "string"}}}
SCHEMA: Json = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}, "status": STATUS},
}


def trial(phase: str = "", **more: object) -> Json:
    return manifest("example.io/v1", "Trial", "one", "default", spec={"size": 1}) | (
        {"status": {"phase": phase, **more}} if phase else {}
    )


def status_of(answer: httpx.Response, code: int = 200) -> Json:
    assert answer.status_code == code, answer.text
    return object_at(cast("Json", answer.json()), "status")


@asynccontextmanager
async def trials(*subresources: str, default: str = "") -> AsyncGenerator[httpx.AsyncClient]:
    """Yield a client of a server with the kind Trial; ``default`` is the phase of a new one."""
    status = {**STATUS, "default": {"phase": default}} if default else STATUS
    properties = {**object_at(SCHEMA, "properties"), "status": status}
    kind = definition("trials", "Trial", schema={**SCHEMA, "properties": properties})
    versions = cast("list[Json]", object_at(kind, "spec")["versions"])
    versions[0]["subresources"] = {name: {} for name in subresources}
    async with api() as (client, services):
        assert (await client.post(DEFINITIONS, json=kind)).status_code == 201
        await services.catch_up()
        yield client


async def test_status_is_created_and_replaced_with_the_object() -> None:
    async with trials() as client:
        assert status_of(await client.post(TRIALS, json=trial("Begun")), 201) == {"phase": "Begun"}
        read = (await client.get(ONE)).json()
        assert read["status"] == {"phase": "Begun"}

        replaced = await client.put(ONE, json={**read, "status": {"phase": "Done"}})
        assert status_of(replaced) == {"phase": "Done"}
        assert int(version(replaced.json())) > int(version(read))
        assert status_of(await client.get(ONE)) == {"phase": "Done"}

        removed = {name: item for name, item in replaced.json().items() if name != "status"}
        assert status_of(await client.put(ONE, json=removed)) == {}


@pytest.mark.parametrize("headers", [MERGE, APPLY], ids=["merge", "apply"])
async def test_status_is_patched_with_the_object(headers: dict[str, str]) -> None:
    async with trials() as client:
        await client.post(TRIALS, json=trial("Begun"))
        patch = trial("Done") if headers is APPLY else {"status": {"phase": "Done"}}
        query = {"fieldManager": "controller", "force": "true"} if headers is APPLY else {}
        assert status_of(await client.patch(ONE, params=query, json=patch, headers=headers)) == {
            "phase": "Done"
        }
        assert status_of(await client.get(ONE)) == {"phase": "Done"}


async def test_writing_the_object_back_as_it_was_read_is_no_change() -> None:
    async with trials() as client:
        await client.post(TRIALS, json=trial("Begun"))
        read = (await client.get(ONE)).json()
        assert (await client.put(ONE, json=read)).json() == read


async def test_status_must_fit_the_schema() -> None:
    async with trials() as client:
        answer = await client.post(TRIALS, json={**trial(), "status": {}})
        assert answer.status_code == 422
        assert "status.phase: Required value" in answer.json()["message"]
        unknown = await client.post(
            TRIALS, params={"fieldValidation": "Strict"}, json=trial("Begun", other=1)
        )
        assert 'unknown field "status.other"' in unknown.json()["message"]


@pytest.mark.parametrize("query", [{}, {"dryRun": "All"}], ids=["write", "dry run"])
async def test_status_with_a_subresource_is_not_written_with_the_object(query: dict[str, str]) -> None:
    async with trials("status") as client:
        assert status_of(await client.post(TRIALS, params=query, json=trial("Begun")), 201) == {}
        if not query:
            begun = await client.patch(f"{ONE}/status", json={"status": {"phase": "Begun"}}, headers=MERGE)
            assert status_of(begun) == {"phase": "Begun"}
            assert status_of(await client.put(ONE, json=begun.json() | {"status": {"phase": "Done"}})) == {
                "phase": "Begun"
            }


@pytest.mark.parametrize("subresources", [(), ("status",)], ids=["field", "subresource"])
async def test_new_object_has_the_default_status_of_its_kind(subresources: tuple[str, ...]) -> None:
    async with trials(*subresources, default="Pending") as client:
        for query in ({"dryRun": "All"}, {}):
            assert status_of(await client.post(TRIALS, params=query, json=trial()), 201) == {
                "phase": "Pending"
            }
        (listed,) = (await client.get(TRIALS)).json()["items"]
        assert listed["status"] == {"phase": "Pending"}

        path = f"{ONE}/{subresources[0]}" if subresources else ONE
        await client.patch(path, json={"status": {"phase": "Done"}}, headers=MERGE)
        assert status_of(await client.get(ONE)) == {"phase": "Done"}
