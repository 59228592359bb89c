"""Changes of bindings by clients: values of a wrong type are refused, not ignored."""

import httpx
import pytest

from engine.http.kube.app import create_app
from tests.api.servers import NOW_MS, TOKEN, serving
from tests.api.test_pages import moved

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
    async with serving(await moved()) as services:
        transport = httpx.ASGITransport(create_app(services, lambda: NOW_MS))
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/merge-patch+json"}
        async with httpx.AsyncClient(transport=transport, base_url="http://kube", headers=headers) as client:
            answer = await client.patch(WEB, json={"spec": {"suspension": suspension}})
            assert answer.status_code == 422, answer.text
            assert [cause["field"] for cause in answer.json()["details"]["causes"]] == [field]
            answer = await client.patch(WEB, json={"spec": {"suspension": {"scheduling": True}}})
            assert answer.json()["spec"]["suspension"] == {"scheduling": True}
