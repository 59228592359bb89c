"""JSON patches and replacements of templates that show the labels and annotations of their policy."""

from typing import cast

import httpx
import pytest
from msgspec import structs

from engine.http.services import Services
from events import ids, keys, specs
from events.json_values import Json, object_at
from tests.api.kube.client import api
from tests.builders.manifests import deployment, raw
from tests.projections.logs import RecordBuilder
from tests.projections.stories import claimed, declared

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
BINDINGS = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings"
HEADERS = {"content-type": "application/json-patch+json"}
ID = "propagationpolicy.karmada.io/permanent-id"
ID_PATH = "/metadata/labels/propagationpolicy.karmada.io~1permanent-id"


async def _metadata_of_claimed(client: httpx.AsyncClient, services: Services) -> Json:
    builder, key = RecordBuilder(), keys.binding_key("Deployment", "default", "web")
    template = builder.input(specs.TemplateApplied(manifest=raw(deployment("web", namespace="default"))))
    binding = structs.replace(declared(key, "web", 1), uid=ids.object_uid("/tests", "input-1", key))
    await services.log.append([template, *builder.decide(binding, claimed(key))])
    return _metadata(await client.get(f"{DEPLOYMENTS}/web"))


def _metadata(answer: httpx.Response) -> Json:
    assert answer.status_code == 200, answer.text
    return object_at(cast("Json", answer.json()), "metadata")


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": ID_PATH},
        {"op": "replace", "path": ID_PATH, "value": "other"},
        {"op": "remove", "path": "/metadata/labels"},
    ],
)
async def test_json_patch_does_not_change_the_labels_of_a_claim(operation: Json) -> None:
    async with api() as (client, services):
        before = await _metadata_of_claimed(client, services)
        patched = _metadata(await client.patch(f"{DEPLOYMENTS}/web", json=[operation], headers=HEADERS))
        assert list(object_at(before, "labels")) == [ID]
        assert patched == _metadata(await client.get(f"{DEPLOYMENTS}/web"))
        for name in ("labels", "annotations"):
            assert patched[name] == before[name]


async def test_json_patch_adds_a_label_beside_those_of_a_claim() -> None:
    added = {"op": "add", "path": "/metadata/labels/team", "value": "a"}
    noted = {"op": "add", "path": "/metadata/annotations/note", "value": "b"}
    async with api() as (client, services):
        before = await _metadata_of_claimed(client, services)
        patched = _metadata(await client.patch(f"{DEPLOYMENTS}/web", json=[added, noted], headers=HEADERS))
        assert object_at(patched, "labels") == {**object_at(before, "labels"), "team": "a"}
        assert object_at(patched, "annotations") == {**object_at(before, "annotations"), "note": "b"}
        owned = str(patched.get("managedFields"))
        assert ID not in owned


async def test_json_patch_cannot_add_a_label_to_an_object_without_labels() -> None:
    added = {"op": "add", "path": "/metadata/labels/team", "value": "a"}
    async with api() as (client, _services):
        await client.post(DEPLOYMENTS, json=deployment("web"))
        answer = await client.patch(f"{DEPLOYMENTS}/web", json=[added], headers=HEADERS)
        assert answer.status_code == 422


async def test_json_patch_of_a_binding_keeps_the_labels_of_its_claim() -> None:
    """A binding has these labels itself; a patch that lost them would be refused as a change of other fields."""
    async with api() as (client, services):
        await _metadata_of_claimed(client, services)
        binding = f"{BINDINGS}/web-deployment"
        before = (await client.get(binding)).json()
        unchanged = {"op": "test", "path": "/kind", "value": "ResourceBinding"}
        answer = await client.patch(binding, json=[unchanged], headers=HEADERS)
        assert answer.status_code == 200, answer.text
        assert answer.json() == before


async def test_replacement_by_the_object_as_read_is_no_write() -> None:
    """Otherwise a lazy policy would place a template that did not change."""
    async with api() as (client, services):
        before = await _metadata_of_claimed(client, services)
        read = (await client.get(f"{DEPLOYMENTS}/web")).json()
        assert _metadata(await client.put(f"{DEPLOYMENTS}/web", json=read)) == before
        assert _metadata(await client.get(f"{DEPLOYMENTS}/web")) == before


async def test_replacement_does_not_own_the_labels_of_a_claim() -> None:
    async with api() as (client, services):
        await _metadata_of_claimed(client, services)
        applied = {**deployment("web"), "metadata": {"name": "web", "labels": {"team": "a"}}}
        query = {"fieldManager": "first", "force": "true"}
        apply_type = {"content-type": "application/apply-patch+yaml"}
        await client.patch(f"{DEPLOYMENTS}/web", json=applied, headers=apply_type, params=query)
        read = (await client.get(f"{DEPLOYMENTS}/web")).json()
        read["spec"]["replicas"] = 7
        replaced = _metadata(await client.put(f"{DEPLOYMENTS}/web", json=read))
        assert "f:replicas" in str(replaced["managedFields"])
        assert ID not in str(replaced["managedFields"])
        assert ID in object_at(replaced, "labels")
