"""The engine owns the status fields that it derives for a template, as Karmada's controller does."""

from typing import cast

import httpx
import msgspec

from engine.http.services import Services
from events import decisions, keys
from events.json_values import Json
from tests.api.servers import kube_client, serving
from tests.builders.inputs import deployment
from tests.builders.manifests import manifest
from tests.projections.logs import RecordBuilder
from tests.projections.stories import declared, status

AT = "/apis/apps/v1/namespaces/default/deployments/web"
KEY = keys.binding_key("Deployment", "default", "web")


async def _apply(client: httpx.AsyncClient, manager: str, status: Json, query: str = "") -> httpx.Response:
    head = manifest("apps/v1", "Deployment", "web")
    return await client.patch(
        f"{AT}/status?fieldManager={manager}{query}",
        json={**head, "status": status},
        headers={"content-type": "application/apply-patch+yaml"},
    )


async def _report_three_ready(services: Services, client: httpx.AsyncClient, builder: RecordBuilder) -> None:
    """Declare the binding, and report three ready replicas in member1."""
    uid = (await client.get(AT)).json()["metadata"]["uid"]
    made = msgspec.structs.replace(declared(KEY, "web", 3), uid=uid)
    await services.log.append(builder.decide(made, status(KEY, member1=3)))


async def test_apply_of_a_status_field_owned_by_the_engine_is_a_conflict() -> None:
    builder = RecordBuilder()
    async with serving([builder.input(deployment("web", 3))]) as services, kube_client(services) as client:
        await _report_three_ready(services, client, builder)
        assert (await client.get(AT)).json()["status"]["readyReplicas"] == 3

        refused = await _apply(client, "auditor", {"readyReplicas": 9})
        assert refused.status_code == 409, refused.text
        assert refused.json()["details"]["causes"] == [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "reballast" with subresource "status" using apps/v1',
                "field": ".status.readyReplicas",
            }
        ]
        # Fields that the engine does not set are free, and applying the same value is no conflict.
        conditions = [{"type": "Audited", "status": "True"}]
        shared = await _apply(client, "auditor", {"readyReplicas": 3, "conditions": conditions})
        assert shared.status_code == 200, shared.text
        shown = cast("Json", (await client.get(AT)).json())
        assert shown["status"] == {
            "observedGeneration": 1,
            "replicas": 3,
            "updatedReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "conditions": conditions,
        }
        # A forced apply takes ownership; the engine still reports the actual value.
        assert (await _apply(client, "auditor", {"readyReplicas": 9}, "&force=true")).status_code == 200
        assert (await client.get(AT)).json()["status"]["readyReplicas"] == 3
        written = (await client.get(AT)).json()["metadata"]["managedFields"]
        owned = {
            entry["manager"]: entry["fieldsV1"]["f:status"] for entry in written if "subresource" in entry
        }
        assert owned["auditor"] == {"f:readyReplicas": {}}
        assert "f:readyReplicas" in owned["reballast"]


async def test_values_of_the_engine_end_with_the_binding_although_a_client_applied_a_status() -> None:
    builder = RecordBuilder()
    async with serving([builder.input(deployment("web", 3))]) as services, kube_client(services) as client:
        await _report_three_ready(services, client, builder)
        conditions = [{"type": "Audited", "status": "True"}]
        assert (await _apply(client, "auditor", {"conditions": conditions})).status_code == 200
        assert (await client.get(AT)).json()["status"]["readyReplicas"] == 3
        withdrawn = decisions.BindingWithdrawn(key=KEY, reason="TemplateDeleted")
        await services.log.append(builder.decide(withdrawn))
        assert (await client.get(AT)).json()["status"] == {"conditions": conditions}


async def test_deletion_may_require_the_version_that_a_derived_status_has() -> None:
    builder = RecordBuilder()
    async with serving([builder.input(deployment("web", 3))]) as services, kube_client(services) as client:
        await _report_three_ready(services, client, builder)
        seen = (await client.get(AT)).json()["metadata"]["resourceVersion"]
        labels = {"metadata": {"labels": {"a": "b"}}}
        merge = {"content-type": "application/merge-patch+json"}
        assert (await client.patch(AT, json=labels, headers=merge)).status_code == 200
        now = (await client.get(AT)).json()["metadata"]["resourceVersion"]
        await services.log.append(builder.decide(status(KEY, member1=2)))
        newest = (await client.get(AT)).json()["metadata"]["resourceVersion"]
        assert int(seen) < int(now) < int(newest)
        for version, code in ((seen, 409), ("x", 409), (f"{newest}0", 409), (newest, 200)):
            options = {"preconditions": {"resourceVersion": version}}
            answer = await client.request("DELETE", AT, json=options)
            assert answer.status_code == code, answer.text
