"""The label of autoscalers' targets, after each change of autoscalers and templates."""

from collections.abc import AsyncIterator
from typing import Final

import httpx
import pytest
from msgspec import structs

from engine.controllers.autoscaling import Autoscaling
from engine.controllers.controller import Access
from engine.domain import marks
from engine.http.kube.app import create_app
from engine.http.services import Services
from engine.kubeapi.schema.resources import Catalogue
from engine.log.local import MemoryLog
from events import keys
from events.json_values import Json, at, object_at
from events.kube_objects import KubeObject
from tests.api.kube.client import MERGE
from tests.api.servers import NOW_MS, kube_client, serving
from tests.builders import manifests
from tests.builders.inputs import applied, joined, policy
from tests.builders.manifests import EVEN, manifest, on, selector
from tests.deciders.story import Story

WEB: Final = keys.binding_key("Deployment", "default", "web")
SCALER: Final = ("autoscaling/v2", "HorizontalPodAutoscaler")
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS: Final = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


def scaler(name: str, target: str = "web") -> Json:
    reference: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    return manifest(*SCALER, name, "default", spec={"scaleTargetRef": reference, "maxReplicas": 3})


class World:
    """A worker and a server on one log, and the controller; ``turn`` lets all of them catch up."""

    def __init__(self, story: Story, services: Services, client: httpx.AsyncClient) -> None:
        self.plane = create_app(services, lambda: NOW_MS).plane
        self.story = story
        self.client = client
        self._services = services
        self._controller = Autoscaling(Access(services, self.plane, services.write_api, lambda: NOW_MS))
        self._position = -1

    async def turn(self) -> int:
        """Return how many records the controller has written."""
        await self.story.submit()
        await self._services.catch_up()
        before = self.story.log.last_number()
        self._position = await self._controller.turn(self._position)
        return self.story.log.last_number() - before

    async def turn_with_all_objects(self) -> int:
        """Take a turn as ``run`` does after a failure."""
        self._position = -1
        return await self.turn()

    async def create(self, name: str, **labels: str) -> None:
        """Create a Deployment as a client does."""
        value = KubeObject(manifests.deployment(name, 2)).with_metadata({"labels": labels})
        assert (await self.client.post(DEPLOYMENTS, json=value.document)).status_code == 201

    async def scale(self, replicas: int) -> None:
        patch: Json = {"spec": {"replicas": replicas}}
        assert (await self.client.patch(f"{DEPLOYMENTS}/web", json=patch, headers=MERGE)).status_code == 200

    async def replicas(self) -> object:
        return at((await self.client.get(f"{DEPLOYMENTS}/web")).json(), "spec", "replicas")

    async def label(self, name: str = "web") -> str | None:
        document = (await self.client.get(f"{DEPLOYMENTS}/{name}")).json()
        text = object_at(document, "metadata", "labels").get(marks.RETAIN_REPLICAS)
        return None if text is None else str(text)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    log = MemoryLog()
    story = Story(log)
    await story.submit(joined("member1"), policy("p", on("member1"), selector("web"), selector(kind=SCALER)))
    async with serving(log=log) as services, kube_client(services) as client:
        yield World(story, services, client)


async def test_target_is_labelled_once_and_only_while_an_autoscaler_names_it(world: World) -> None:
    await world.create("web")
    await world.create("other")
    assert await world.turn() == 0
    await world.story.submit(applied(scaler("a")), applied(scaler("b")))
    assert await world.turn() == 1
    assert (await world.label(), await world.label("other")) == ("true", None)
    assert await world.turn() == 0
    assert (await world.client.delete(f"{AUTOSCALERS}/a")).status_code == 200
    assert await world.turn() == 0
    assert (await world.client.delete(f"{AUTOSCALERS}/b")).status_code == 200
    assert await world.turn() == 1
    assert await world.label() is None


async def test_target_that_is_created_after_its_autoscaler_is_labelled(world: World) -> None:
    await world.story.submit(applied(scaler("a")))
    assert await world.turn() == 0
    await world.create("web")
    assert await world.turn() == 1
    assert await world.label() == "true"


async def test_label_moves_with_the_target_of_an_autoscaler(world: World) -> None:
    await world.create("web")
    await world.create("other")
    await world.story.submit(applied(scaler("a")))
    await world.turn()
    await world.story.submit(applied(scaler("a", "other")))
    assert await world.turn() == 2
    assert (await world.label(), await world.label("other")) == (None, "true")


async def test_label_of_a_client_stays_without_an_autoscaler(world: World) -> None:
    await world.create("web", **{marks.RETAIN_REPLICAS: "true"})
    assert await world.turn() == 0
    await world.story.submit(applied(scaler("a")))
    assert await world.turn() == 0
    assert (await world.client.delete(f"{AUTOSCALERS}/a")).status_code == 200
    assert await world.turn() == 0
    assert await world.label() == "true"


async def test_label_that_a_client_removes_is_set_again(world: World) -> None:
    await world.create("web")
    await world.story.submit(applied(scaler("a")))
    await world.turn()
    patch: Json = {"metadata": {"labels": {marks.RETAIN_REPLICAS: None}}}
    assert (await world.client.patch(f"{DEPLOYMENTS}/web", json=patch, headers=MERGE)).status_code == 200
    assert await world.label() is None
    assert await world.turn() == 1
    assert await world.label() == "true"


async def test_label_is_removed_if_the_autoscaler_is_deleted_before_a_turn_with_all_objects(
    world: World,
) -> None:
    await world.create("web")
    await world.story.submit(applied(scaler("a")))
    await world.turn()
    assert (await world.client.delete(f"{AUTOSCALERS}/a")).status_code == 200
    assert await world.turn_with_all_objects() == 1
    assert await world.label() is None


@pytest.mark.parametrize(("target", "meanwhile", "replicas"), [("web", 0, 5), ("web", 7, 7), ("other", 0, 2)])
async def test_target_follows_its_members_unless_a_client_scales_it_meanwhile(
    world: World, monkeypatch: pytest.MonkeyPatch, target: str, meanwhile: int, replicas: int
) -> None:
    divided = on("member1", scheduling=EVEN)
    await world.story.submit(policy("p", divided, selector("web"), selector(kind=SCALER)))
    await world.create("web")
    await world.story.submit(applied(scaler("a", target)))
    await world.turn()
    work = (await world.story.running(WEB))["member1"]
    await world.story.report(WEB, "member1", of=structs.replace(work, replicas=5))
    catalogue = world.plane.catalogue

    async def slow() -> Catalogue:
        monkeypatch.undo()
        if meanwhile:
            await world.scale(meanwhile)
        return await catalogue()

    monkeypatch.setattr(world.plane, "catalogue", slow)
    await world.turn()
    assert await world.replicas() == replicas
