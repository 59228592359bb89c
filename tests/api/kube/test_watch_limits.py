"""Limits on the number of open watches."""

from types import ModuleType

import pytest

from engine.http.kube import watches
from engine.http.kube.app import create_app
from engine.http.kube.kubernetes_events import lists
from engine.http.kube.members import watches as member_watches
from engine.simulation import defaults
from engine.simulation.member_fleet import Members
from tests.api import feeds
from tests.api.servers import NOW_MS, serving

MEMBER = "/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy"


@pytest.mark.parametrize(
    ("module", "name", "path"),
    [
        (watches, "WATCHERS_MAX", "/api/v1/configmaps"),
        (lists, "_WATCHERS_MAX", "/api/v1/events"),
        (member_watches, "_WATCHERS_MAX", f"{MEMBER}/api/v1/configmaps"),
    ],
)
async def test_watches_that_are_opened_at_once_are_limited(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, path: str
) -> None:
    monkeypatch.setattr(module, name, 2)
    async with serving() as services:
        fleet = Members(services.log, lambda: NOW_MS, defaults.three_members())
        await fleet.turn()
        app = create_app(services, lambda: NOW_MS, fleet)
        for _ in range(2):
            assert await feeds.statuses(app, f"{path}?watch=1", 5) == [200, 200, 429, 429, 429]
