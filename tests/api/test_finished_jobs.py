"""Finished Jobs with ``ttlSecondsAfterFinished`` are deleted after that time, in the control plane and the clusters."""

from collections.abc import AsyncIterator
from typing import Final

import httpx
import pytest

from engine.controllers.controller import Access
from engine.controllers.finished_jobs import FinishedJobs
from engine.http.kube.app import create_app
from engine.http.services import Services
from engine.kubeapi.schema.resources import Resource
from engine.log.local import MemoryLog
from events import job_statuses, keys, specs, times, works
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.api.kube.client import MERGE
from tests.api.servers import kube_client, serving
from tests.builders.inputs import joined, policy
from tests.builders.manifests import JOB, manifest, on, selector
from tests.deciders.story import START_MS, Story

JOBS: Final = "/apis/batch/v1/namespaces/default/jobs"
KEY: Final = keys.binding_key("Job", "default", "once")
FINISHED: Final = times.to_text(START_MS + 5_000)
COMPLETE: Final = {
    ".succeeded": "1",
    job_statuses.COMPLETE: job_statuses.TRUE,
    job_statuses.COMPLETED: FINISHED,
}
TTL_S: Final = 60


class World:
    """A worker and a server on one log, and the controller; ``at`` lets all of them catch up at a time."""

    def __init__(self, story: Story, services: Services, client: httpx.AsyncClient) -> None:
        self.story = story
        self.client = client
        self._services = services
        self.plane = create_app(services, story.clock).plane
        self._controller = self.server()
        self._position = -1

    def server(self) -> FinishedJobs:
        return FinishedJobs(Access(self._services, self.plane, self._services.write_api, self.story.clock))

    def restart(self) -> None:
        """Let a new server go on that has followed nothing."""
        self._controller, self._position = self.server(), -1

    async def create(self, ttl_s: int | None = TTL_S) -> None:
        await self.post(ttl_s)
        await self.at(1)

    async def post(self, ttl_s: int | None = TTL_S) -> None:
        pod: Json = {"containers": [{"name": "main", "image": "busybox"}], "restartPolicy": "Never"}
        ttl: Json = {} if ttl_s is None else {"ttlSecondsAfterFinished": ttl_s}
        job = manifest(*JOB, "once", spec={"template": {"spec": pod}, **ttl})
        created = await self.client.post(JOBS, json=job)
        assert created.status_code == 201, created.text

    async def finish(self, values: dict[str, str] = COMPLETE) -> None:
        await self.story.report(KEY, "member1", values=values)
        await self.at(10)

    async def at(self, seconds: float) -> None:
        """Let everything happen that is due this many seconds after the start."""
        self.story.now_ms = START_MS + int(seconds * times.SECOND_MS)
        for _ in range(2):
            await self.story.submit()
            await self._services.catch_up()
            self._position = await self._controller.turn(self._position)

    async def exists(self) -> bool:
        return (await self.client.get(f"{JOBS}/once")).status_code == 200


@pytest.fixture
async def world() -> AsyncIterator[World]:
    log = MemoryLog()
    story = Story(log)
    await story.submit(joined("member1"), policy("p", on("member1"), selector("once", JOB)))
    async with serving(log=log) as services, kube_client(services) as client:
        yield World(story, services, client)


async def test_job_is_deleted_everywhere_when_its_time_after_the_end_is_over(world: World) -> None:
    await world.create()
    await world.finish()
    await world.at(64.9)
    assert await world.exists()
    await world.at(65)
    assert not await world.exists()
    (deleted,) = await world.story.recorded(specs.TemplateDeleted)
    assert deleted.template.name == "once"
    assert await world.story.recorded(works.WorkRemoved, "member1")


async def test_failed_job_is_deleted_after_the_time_since_the_controller_saw_it(world: World) -> None:
    await world.create()
    await world.finish({".failed": "1", job_statuses.FAILED: job_statuses.TRUE})
    await world.at(69.9)
    assert await world.exists()
    await world.at(70)
    assert not await world.exists()


async def test_new_server_deletes_what_finished_before_it_started(world: World) -> None:
    await world.create()
    await world.finish()
    world.restart()
    await world.at(65)
    assert not await world.exists()


async def test_changed_time_counts(world: World) -> None:
    await world.create()
    await world.finish()
    longer = {"spec": {"ttlSecondsAfterFinished": 2 * TTL_S}}
    assert (await world.client.patch(f"{JOBS}/once", json=longer, headers=MERGE)).status_code == 200
    await world.at(65)
    assert await world.exists()
    await world.at(125)
    assert not await world.exists()


async def test_job_without_a_time_stays(world: World) -> None:
    await world.create(ttl_s=None)
    await world.finish()
    await world.at(100_000)
    assert await world.exists()


@pytest.mark.parametrize(
    "condition",
    [{"type": "Suspended", "status": "True"}, {"type": "Complete", "status": "False"}],
)
async def test_job_with_a_condition_that_is_no_end_stays(world: World, condition: Json) -> None:
    await world.create()
    status: Json = {"status": {"conditions": [{**condition, "lastTransitionTime": FINISHED}]}}
    patched = await world.client.patch(f"{JOBS}/once/status", json=status, headers=MERGE)
    assert patched.json()["status"]["conditions"]
    await world.at(65)
    assert await world.exists()


@pytest.mark.parametrize("seconds", [11, 65])
async def test_new_job_of_the_same_name_has_its_own_time(world: World, seconds: int) -> None:
    await world.create()
    await world.finish()
    assert (await world.client.delete(f"{JOBS}/once")).status_code == 200
    await world.at(seconds)
    await world.create()
    await world.at(100)
    assert await world.exists()


async def test_new_job_that_replaces_a_due_one_meanwhile_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.create()
    await world.finish()
    current, replaced = world.plane.current, list[str]()

    async def slow(resource: Resource, namespace: str, name: str) -> KubeObject | None:
        job = await current(resource, namespace, name)
        if not replaced:
            replaced.append(name)
            assert (await world.client.delete(f"{JOBS}/once")).status_code == 200
            await world.post()
        return job

    monkeypatch.setattr(world.plane, "current", slow)
    await world.at(65)
    assert await world.exists()
    assert replaced
