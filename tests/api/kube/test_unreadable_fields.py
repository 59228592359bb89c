"""Objects of other producers with fields that no verdict checks and no JSON decoder reads."""

import msgspec
import pytest

from events import specs
from tests.api.kube.client import MERGE, api, metadata
from tests.builders.manifests import deployment, raw
from tests.projections.logs import RecordBuilder

WEB = "/apis/apps/v1/namespaces/default/deployments/web"
UNREADABLE = [
    b'"odd":{"number":1e999}',
    b'"status":{"number":' + b"9" * 4_500 + b"}",
    b'"odd":{"text":"\xff"}',
]


def _applied(field: bytes) -> specs.TemplateApplied:
    manifest = bytes(raw(deployment("web", namespace="default")))
    return specs.TemplateApplied(manifest=msgspec.Raw(b"{" + field + b"," + manifest[1:]))


@pytest.mark.parametrize("field", UNREADABLE)
async def test_object_with_an_unreadable_field_is_shown_changed_and_deleted(field: bytes) -> None:
    async with api() as (client, services):
        await services.log.append([RecordBuilder().input(_applied(field))])

        assert metadata(await client.get(WEB))["name"] == "web"
        labelled = await client.patch(WEB, json={"metadata": {"labels": {"a": "b"}}}, headers=MERGE)
        assert metadata(labelled)["labels"] == {"a": "b"}
        scaled = await client.patch(f"{WEB}/scale", json={"spec": {"replicas": 5}}, headers=MERGE)
        assert scaled.json()["spec"] == {"replicas": 5}
        assert (await client.delete(WEB)).status_code == 200
        assert (await client.get(WEB)).status_code == 404
