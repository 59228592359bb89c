"""Changes of bindings by clients: values of a wrong type are refused, not ignored."""

import pytest

from events import codec, specs
from events.json_values import Json, object_at
from tests.api.servers import kube_client, serving
from tests.api.story_records import moved

WEB = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/web-deployment"


@pytest.mark.parametrize(
    ("suspension", "field"),
    [
        ({"scheduling": "true"}, "spec.suspension.scheduling"),
        ({"dispatching": 1}, "spec.suspension.dispatching"),
        ([], "spec.suspension"),
        ("all", "spec.suspension"),
    ],
)
async def test_suspension_of_another_type_is_refused(suspension: object, field: str) -> None:
    headers = {"content-type": "application/merge-patch+json"}
    async with serving(await moved()) as services, kube_client(services, headers=headers) as client:
        answer = await client.patch(WEB, json={"spec": {"suspension": suspension}})
        assert answer.status_code == 422, answer.text
        assert [cause["field"] for cause in answer.json()["details"]["causes"]] == [field]
        answer = await client.patch(WEB, json={"spec": {"suspension": {"scheduling": True}}})
        assert answer.json()["spec"]["suspension"] == {"scheduling": True}


@pytest.mark.parametrize(("is_suspended", "requests"), [(True, [(None, True)]), (False, [])])
async def test_changed_suspension_is_recorded(is_suspended: bool, requests: list[object]) -> None:
    headers = {"content-type": "application/merge-patch+json"}
    async with serving(await moved()) as services, kube_client(services, headers=headers) as client:
        before = services.log.last_number()
        answer = await client.patch(WEB, json={"spec": {"suspension": {"dispatching": is_suspended}}})
        assert answer.status_code == 200, answer.text
        written = [codec.decode(record) for record in await services.log.read_all(before, 10)]
        events = [record.data for record in written if isinstance(record, codec.Decoded)]
        assert requests == [
            (event.scheduling, event.dispatching)
            for event in events
            if isinstance(event, specs.SuspensionWritten)
        ]


@pytest.mark.parametrize(
    "patch", [{"spec": {"clusters": []}}, {"spec": {"replicas": 9}}, {"metadata": {"labels": {"a": "b"}}}]
)
async def test_other_fields_of_a_binding_cannot_be_changed(patch: Json) -> None:
    headers = {"content-type": "application/merge-patch+json"}
    async with serving(await moved()) as services, kube_client(services, headers=headers) as client:
        answer = await client.patch(WEB, json=patch)
        assert answer.status_code == 403, answer.text


@pytest.mark.parametrize(
    ("method", "spec", "code"),
    [
        ("PATCH", {"suspension": {"scheduling": True}}, 409),
        ("PATCH", {"replicas": 9}, 403),
        ("PUT", {"replicas": 9}, 409),
    ],
)
async def test_change_of_an_older_binding_is_refused_for_the_reason_that_helps(
    method: str, spec: Json, code: int
) -> None:
    """A client that gets a conflict tries again with the newest version, which never allows a forbidden change."""
    headers = {"content-type": "application/merge-patch+json"} if method == "PATCH" else {}
    async with serving(await moved()) as services, kube_client(services, headers=headers) as client:
        shown: Json = (await client.get(WEB)).json()
        body: Json = shown if method == "PUT" else {}
        metadata = {**object_at(body, "metadata"), "resourceVersion": "1"}
        stale: Json = {**body, "metadata": metadata, "spec": {**object_at(body, "spec"), **spec}}
        answer = await client.request(method, WEB, json=stale)
        assert answer.status_code == code, answer.text
