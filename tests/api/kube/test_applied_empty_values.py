"""Null and empty values in server-side applies have the effects that they have in a real API server (1.36)."""

import httpx
import pytest

from events.json_values import Json, at, object_at
from tests.api.kube.client import api, version
from tests.builders.manifests import deployment

APPLY = {"content-type": "application/apply-patch+yaml"}
WEB = "/apis/apps/v1/namespaces/default/deployments/web"
FULL: Json = {
    "paused": True,
    "hostNetwork": True,
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "k", "operator": "Exists"}],
    "imagePullSecrets": [{"name": "s"}],
}


def web(fields: Json) -> Json:
    """A Deployment with these fields of its pods, or with ``paused``."""
    value = deployment("web", namespace="default")
    for name, field in fields.items():
        object_at(value, *(("spec",) if name == "paused" else ("spec", "template", "spec")))[name] = field
    return value


def shown(answer: httpx.Response, field: str) -> object:
    spec = object_at(answer.json(), "spec")
    return spec.get(field, at(spec, "template", "spec", field))


async def apply(
    client: httpx.AsyncClient, value: Json, manager: str, *, force: bool = False
) -> httpx.Response:
    query = {"fieldManager": manager, "force": str(force).lower()}
    return await client.patch(WEB, json=value, headers=APPLY, params=query)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("paused", False),
        ("hostNetwork", False),
        ("nodeSelector", {}),
        ("nodeSelector", None),
        ("tolerations", []),
        ("tolerations", None),
    ],
)
async def test_empty_value_replaces_that_of_another_manager_if_it_is_forced(
    field: str, value: object
) -> None:
    async with api() as (client, _):
        await apply(client, web(FULL), "first")
        refused = await apply(client, web({field: value}), "second")
        assert (refused.status_code, f".{field}" in refused.json()["message"]) == (409, True)
        forced = await apply(client, web({field: value}), "second", force=True)
        assert (forced.status_code, shown(forced, field)) == (200, None)
        entries = forced.json()["metadata"]["managedFields"]
        owners = [entry["manager"] for entry in entries if f"f:{field}" in str(entry["fieldsV1"])]
        assert owners == ["second"]
        again = await apply(client, web({field: value}), "second")
        assert version(again.json()) == version(forced.json())


@pytest.mark.parametrize("value", [[], None])
async def test_empty_list_adds_nothing_to_a_list_that_is_merged_by_item(value: object) -> None:
    async with api() as (client, _):
        await apply(client, web(FULL), "first")
        merged = await apply(client, web({"imagePullSecrets": value}), "second")
        assert (merged.status_code, shown(merged, "imagePullSecrets")) == (200, FULL["imagePullSecrets"])
