"""Templates that a lazy policy has marked but not claimed: they show its labels and annotations without a binding."""

from collections.abc import Sequence
from typing import cast

import httpx
import pytest
from msgspec import structs

from events import decisions, ids, keys, records, shapes, specs
from events.json_values import Json, object_at
from tests.api.kube.client import api
from tests.builders.manifests import deployment, raw
from tests.projections.logs import RecordBuilder
from tests.projections.stories import claimed, declared

WEB = "/apis/apps/v1/namespaces/default/deployments/web"
KEY = keys.binding_key("Deployment", "default", "web")
LAZY = shapes.PolicyRef(kind="PropagationPolicy", name="lazy", namespace="default")
ID = "propagationpolicy.karmada.io/permanent-id"
MARKED = decisions.TemplateMarked(key=KEY, policy=LAZY, permanent_id="id-of-lazy")
RELEASED = decisions.BindingReleased(key=KEY, policy=LAZY, reason="PolicyDeleted")
_MERGE = {"content-type": "application/merge-patch+json"}
DECLARED = structs.replace(declared(KEY, "web", 1), uid=ids.object_uid("/tests", "input-1", KEY))


def _created(builder: RecordBuilder) -> records.Record:
    return builder.input(specs.TemplateApplied(manifest=raw(deployment("web", namespace="default"))))


async def _shown(client: httpx.AsyncClient) -> Json:
    answer = await client.get(WEB)
    assert answer.status_code == 200, answer.text
    return object_at(cast("Json", answer.json()), "metadata")


async def test_marked_template_names_the_lazy_policy_in_a_new_version() -> None:
    builder = RecordBuilder()
    async with api() as (client, services):
        await services.log.append([_created(builder)])
        before = await _shown(client)
        await services.log.append(builder.decide(MARKED))
        after = await _shown(client)
        assert object_at(after, "labels") == {ID: "id-of-lazy"}
        assert object_at(after, "annotations")["propagationpolicy.karmada.io/name"] == "lazy"
        assert int(str(after["resourceVersion"])) > int(str(before["resourceVersion"]))
        changed = await client.patch(WEB, json={"spec": {"replicas": 3}}, headers=_MERGE)
        assert object_at(changed.json(), "metadata")["labels"] == {ID: "id-of-lazy"}


@pytest.mark.parametrize(
    "rest",
    [
        [RELEASED],
        [DECLARED, RELEASED],
        [DECLARED, claimed(KEY), RELEASED],
    ],
)
async def test_mark_disappears(rest: Sequence[shapes.Event]) -> None:
    builder = RecordBuilder()
    async with api() as (client, services):
        await services.log.append([_created(builder)])
        before = await _shown(client)
        await services.log.append(builder.decide(MARKED, *rest))
        after = await _shown(client)
        assert before.get("labels") == after.get("labels")
        assert before.get("annotations") == after.get("annotations")


async def test_binding_that_others_need_does_not_change_the_mark() -> None:
    builder = RecordBuilder()
    async with api() as (client, services):
        await services.log.append([_created(builder), *builder.decide(MARKED, DECLARED)])
        assert object_at(await _shown(client), "labels") == {ID: "id-of-lazy"}
        unneeded = decisions.BindingWithdrawn(key=KEY, reason="NotRequired")
        await services.log.append(builder.decide(unneeded))
        assert object_at(await _shown(client), "labels") == {ID: "id-of-lazy"}


async def test_new_template_of_the_same_name_is_not_marked() -> None:
    builder = RecordBuilder()
    async with api() as (client, services):
        await services.log.append([_created(builder), *builder.decide(MARKED)])
        await client.delete(WEB)
        await client.post(WEB.removesuffix("/web"), json=deployment("web"))
        assert "labels" not in await _shown(client)
