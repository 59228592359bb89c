"""Written statuses of clusters: each part becomes its own event, and a repeated one none."""

import itertools
from collections.abc import AsyncIterator
from typing import Final

import httpx
import pytest

from engine.http.kube.app import create_app
from engine.http.services import Services
from events import codec, topics
from events.json_values import Json, object_at, objects_at
from tests.api.kube.client import CLUSTERS, MERGE, create_cluster
from tests.api.servers import NOW_MS, kube_client, serving

READY: Final[Json] = {"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "well"}
FAST: Final[Json] = {
    "type": "Fast",
    "status": "True",
    "reason": "Measured",
    "message": "",
    "lastTransitionTime": "2024-05-25T09:00:00Z",
}
DEPLOYMENTS: Final = [
    {"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}
]


class World:
    """A control plane with the cluster ``edge``; each look at its clock takes a second."""

    def __init__(self, services: Services, kube: httpx.AsyncClient) -> None:
        self.services = services
        self.kube = kube

    async def write(self, status: Json) -> httpx.Response:
        return await self.kube.patch(f"{CLUSTERS}/edge/status", json={"status": status}, headers=MERGE)

    async def status(self) -> Json:
        return object_at((await self.kube.get(f"{CLUSTERS}/edge")).json(), "status")

    async def events(self) -> list[str]:
        """Return the types of the events of clusters after the first one."""
        decoded = [
            codec.decode(record) for record in await self.services.log.read(topics.CLUSTERS, 0, 1, 100)
        ]
        return [type(event.data).__name__ for event in decoded if isinstance(event, codec.Decoded)]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    ticks = itertools.count(NOW_MS, 1_000)
    async with serving() as services:
        application = create_app(services, lambda: next(ticks))
        async with kube_client(services, application) as kube:
            await create_cluster(kube)
            yield World(services, kube)


@pytest.mark.parametrize(
    ("status", "events"),
    [
        ({"nodeSummary": {"totalNum": 3, "readyNum": 2}}, ["CapacityReported", "ClusterJoined"]),
        ({"resourceSummary": {"allocatable": {"cpu": "8"}}}, ["CapacityReported", "ClusterJoined"]),
        ({"conditions": [READY]}, []),
        ({"conditions": [{**READY, "status": "False"}]}, ["ClusterHealthChanged"]),
        ({"conditions": [{**READY, "status": "Unknown"}]}, ["ClusterHealthChanged"]),
        ({"conditions": [READY, FAST]}, ["ClusterConditionsReported"]),
        ({"kubernetesVersion": "v1.30.1"}, ["ClusterJoined"]),
        ({"apiEnablements": DEPLOYMENTS}, ["ClusterJoined"]),
    ],
)
async def test_written_status_is_shown_and_writes_nothing_when_repeated(
    world: World, status: Json, events: list[str]
) -> None:
    assert (await world.write({"conditions": [READY]})).status_code == 200
    before = await world.events()
    for _ in range(2):
        assert (await world.write(status)).status_code == 200
        assert await world.events() == [*before, *events]
    shown = await world.status()
    fields = {name: value for name, value in status.items() if name != "conditions"}
    assert shown | fields == shown
    texts = [(condition["type"], condition["status"]) for condition in objects_at(shown, "conditions")]
    assert {(condition["type"], condition["status"]) for condition in objects_at(status, "conditions")} <= {
        *texts
    }


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        ({"nodeSummary": {"totalNum": "many"}}, 400, "Expected `int | null`, got `str`"),
        (
            {"conditions": [{**FAST, "lastTransitionTime": "2024-02-30T00:00:00Z"}]},
            400,
            "day is out of range",
        ),
        (
            {"resourceSummary": {"allocatable": {"cpu": "much"}}},
            422,
            "allocatable.cpu: 'much' is not a quantity",
        ),
    ],
)
async def test_unreadable_or_invalid_status_is_refused(
    world: World, status: Json, code: int, reason: str
) -> None:
    answer = await world.write(status)
    assert (answer.status_code, await world.events()) == (code, [])
    assert reason in answer.json()["message"]
