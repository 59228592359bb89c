"""Generations of objects that clients write in a member."""

import pytest

from tests.api.kube.client import MEMBER, MERGE, member
from tests.builders.manifests import deployment

pytestmark = pytest.mark.virtual_time

WEB = f"{MEMBER}/apis/apps/v1/namespaces/default/deployments"


async def test_label_of_a_new_object_makes_no_generation() -> None:
    async with member() as client:
        created = await client.post(WEB, json=deployment("web", 1))
        labelled = await client.patch(
            f"{WEB}/web", content='{"metadata":{"labels":{"a":"b"}}}', headers=MERGE
        )
        scaled = await client.patch(f"{WEB}/web", content='{"spec":{"replicas":2}}', headers=MERGE)
    generations = [answer.json()["metadata"]["generation"] for answer in (created, labelled, scaled)]
    assert generations == [1, 1, 2]
