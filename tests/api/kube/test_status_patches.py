"""JSON patches that clients compute from an object with its status, such as those of fabric8."""

import pytest

from tests.api.kube.client import api
from tests.builders.manifests import deployment

WEB = "/apis/apps/v1/namespaces/default/deployments"
HEADERS = {"content-type": "application/json-patch+json"}


@pytest.mark.parametrize(
    "change",
    [
        {"op": "remove", "path": "/status"},
        {"op": "replace", "path": "/status/replicas", "value": 9},
        {"op": "add", "path": "/status/readyReplicas", "value": 9},
    ],
)
async def test_json_patch_of_an_object_ignores_changes_of_its_status(change: dict[str, object]) -> None:
    async with api() as (client, _):
        await client.post(WEB, json=deployment("web"))
        scaled = {"op": "replace", "path": "/spec/replicas", "value": 4}
        answer = await client.patch(f"{WEB}/web", json=[change, scaled], headers=HEADERS)
        assert answer.status_code == 200, answer.text
        assert answer.json()["spec"]["replicas"] == 4
        assert not answer.json()["status"]


async def test_json_patch_of_a_field_beside_the_status_is_checked() -> None:
    async with api() as (client, _):
        await client.post(WEB, json=deployment("web"))
        absent = [{"op": "remove", "path": "/statuses"}]
        assert (await client.patch(f"{WEB}/web", json=absent, headers=HEADERS)).status_code == 422
