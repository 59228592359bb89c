"""Changes of bindings by clients: values of a wrong type are refused, not ignored."""

import pytest

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
