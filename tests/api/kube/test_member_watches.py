"""Versions of a member's objects across restarts of the server."""

import pytest

from tests.api.kube.client import MEMBER, member, version
from tests.api.servers import NOW_MS

pytestmark = pytest.mark.virtual_time

MAPS = f"{MEMBER}/api/v1/namespaces/default/configmaps"


async def test_version_of_an_earlier_process_is_expired() -> None:
    async with member() as client:
        first = version((await client.get(MAPS)).json())
    async with member(lambda: NOW_MS + 1_000) as client:
        later = version((await client.get(MAPS)).json())
        earlier = await client.get(f"{MAPS}?watch=1&resourceVersion={first}")
    assert int(later) > int(first)
    assert (earlier.status_code, earlier.json()["reason"]) == (410, "Expired")
