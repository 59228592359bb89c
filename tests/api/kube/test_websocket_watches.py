"""Watches over WebSockets, which are not served: clients such as fabric8 watch over HTTP after an empty response."""

from tests.api.kube.client import MAPS, MEMBER, member
from tests.builders.manifests import manifest

WATCH = f"{MAPS}?watch=1&timeoutSeconds=1"
UPGRADE = {"connection": "Upgrade", "upgrade": "WebSocket"}


async def test_watch_over_a_websocket_gets_an_empty_response() -> None:
    async with member() as client:
        for path in ("", MEMBER):
            created = await client.post(path + MAPS, json=manifest("v1", "ConfigMap", "cfg"))
            assert created.status_code == 201, created.text
            assert "ADDED" in (await client.get(path + WATCH)).text
            answer = await client.get(path + WATCH, headers=UPGRADE)
            assert (answer.status_code, answer.content) == (200, b"")
