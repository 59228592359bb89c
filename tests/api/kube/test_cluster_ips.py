"""Cluster IPs of Services in the control plane: shown to clients that wait for one, never stored or propagated."""

import ipaddress
import json
from typing import cast

import httpx
import pytest

from engine.http.services import Services
from events.json_values import Json, object_at
from tests.api.kube.client import MERGE, api
from tests.builders.manifests import manifest

SERVICES = "/api/v1/namespaces/default/services"
WEB = f"{SERVICES}/web"


def service(**spec: object) -> Json:
    return manifest("v1", "Service", "web", "default", spec={"ports": [{"port": 80}], **spec})


def spec_of(answer: httpx.Response, code: int = 200) -> Json:
    assert answer.status_code == code, answer.text
    return object_at(cast("Json", answer.json()), "spec")


async def recorded(services: Services) -> list[Json]:
    """Return the specs of the manifests in the log."""
    records = await services.log.read_all(0, 100)
    return [
        object_at(json.loads(record.value), "manifest", "spec")
        for record in records
        if record.topic == "specs"
    ]


async def test_service_has_an_address_that_is_not_recorded() -> None:
    async with api() as (client, services):
        created = spec_of(await client.post(SERVICES, json=service()), 201)
        read = spec_of(await client.get(WEB))

        assert ipaddress.ip_address(str(created["clusterIP"])).is_private
        assert read == created
        assert read["clusterIPs"] == [read["clusterIP"]]
        assert await recorded(services) == [{"ports": [{"port": 80}]}]


async def test_writing_a_service_back_as_it_was_read_is_no_change() -> None:
    async with api() as (client, services):
        await client.post(SERVICES, json=service())
        read = (await client.get(WEB)).json()

        for body in (read, service()):
            assert (await client.put(WEB, json=body)).json() == read
        assert len(await recorded(services)) == 1


async def test_patch_of_a_service_records_no_address() -> None:
    async with api() as (client, services):
        address = spec_of(await client.post(SERVICES, json=service()), 201)["clusterIP"]

        patched = spec_of(await client.patch(WEB, json={"spec": {"type": "NodePort"}}, headers=MERGE))

        assert (patched["type"], patched["clusterIP"]) == ("NodePort", address)
        assert "clusterIP" not in (await recorded(services))[-1]


async def test_external_service_has_no_address_until_its_type_changes() -> None:
    async with api() as (client, _):
        address = spec_of(await client.post(SERVICES, json=service()), 201)["clusterIP"]
        external = {"type": "ExternalName", "externalName": "example.com"}
        assert "clusterIP" not in spec_of(await client.patch(WEB, json={"spec": external}, headers=MERGE))

        again = {"type": "ClusterIP", "externalName": None}
        assert spec_of(await client.patch(WEB, json={"spec": again}, headers=MERGE))["clusterIP"] == address


@pytest.mark.parametrize("address", ["None", "10.96.0.7"])
async def test_address_that_a_client_chose_stays(address: str) -> None:
    async with api() as (client, services):
        await client.post(SERVICES, json=service(clusterIP=address))
        assert spec_of(await client.put(WEB, json=service(selector={"app": "web"})))["clusterIP"] == address
        assert (await recorded(services))[-1]["clusterIP"] == address


async def test_address_may_not_be_changed() -> None:
    async with api() as (client, _):
        await client.post(SERVICES, json=service())
        answer = await client.put(WEB, json=service(clusterIP="10.96.0.7"))
        assert answer.status_code == 422
        assert "may not change once set" in answer.json()["message"]
