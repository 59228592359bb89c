"""Reads of the served kinds that run at the same time, on views that several threads read at once."""

import asyncio
import dataclasses
import json
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from engine.http.kube.app import create_app
from engine.http.kube.bootstrap_objects import BootstrapObjects
from engine.http.kube.control_plane import ControlPlane
from engine.http.services import Services
from engine.kubeapi.schema.resources import Resource
from engine.writing.read_side import ReadSide
from events.kube_objects import KubeObject
from events.validation import manifests
from projections.changes import checkpoint
from projections.port import Rows
from projections.runner import Projector
from projections.store import Reader, Store
from tests.api.kube.client import MERGE, version
from tests.api.servers import NOW_MS, kube_client, plane_parts, serving
from tests.background import background
from tests.builders import inputs
from tests.builders.log_records import record
from tests.builders.manifests import definition

pytestmark = pytest.mark.virtual_time

ACCOUNTS = "/api/v1/serviceaccounts"
Answer = TypeVar("Answer")


class FileViews:
    """Views in a file, as those of the views' own process: readers do not wait for each other."""

    def __init__(self, projector: Projector, store: Reader) -> None:
        self._projector = projector
        self.store = store

    @property
    def folded(self) -> int:
        return self._projector.folded

    async def wait_folded(self, number: int) -> None:
        await self._projector.wait_folded(number)


class SlowReads(ReadSide):
    """Reads of the views that wait for their events next: in the thread, and before they return."""

    def __init__(self, services: Services) -> None:
        super().__init__(log=services.log, views=services.views)
        self.waits: list[tuple[threading.Event, asyncio.Event]] = []
        self.begun = asyncio.Semaphore(0)

    async def peek(self, query: Callable[[Rows], Answer]) -> Answer:
        if not self.waits:
            return await super().peek(query)
        may_read, may_return = self.waits.pop(0)
        loop = asyncio.get_running_loop()

        def paused_query(rows: Rows) -> Answer:
            checkpoint(rows)  # the read sees the tables as of now
            loop.call_soon_threadsafe(self.begun.release)
            may_read.wait(10)
            return query(rows)

        answer = await super().peek(paused_query)
        await may_return.wait()
        return answer


@asynccontextmanager
async def on_files(directory: Path) -> AsyncGenerator[Services]:
    async with serving() as services:
        store = await asyncio.to_thread(Store, directory / "views.sqlite")
        projector = Projector(services.log, store, manifests.check)
        async with background(projector.run()):
            await projector.wait_folded(0)
            await asyncio.sleep(0.1)
            views = FileViews(projector, await asyncio.to_thread(Reader, directory / "views.sqlite"))
            yield dataclasses.replace(services, views=views)
        await asyncio.to_thread(views.store.close)
        projector.close()
        await asyncio.to_thread(store.close)


def interrupt_list(
    monkeypatch: pytest.MonkeyPatch,
    bootstrap: BootstrapObjects,
    write: Callable[[], Coroutine[None, None, None]],
) -> None:
    """Run ``write`` in the first list of bootstrap objects, after it has begun to read."""
    listed, loop, writes = bootstrap.listed, asyncio.get_running_loop(), [write]

    def interrupted(
        rows: Rows, resource: Resource, namespace: str, *, start: str = "", name: str = ""
    ) -> Iterable[KubeObject]:
        if not name and writes:
            asyncio.run_coroutine_threadsafe(writes.pop()(), loop).result()
        return listed(rows, resource, namespace, start=start, name=name)

    monkeypatch.setattr(bootstrap, "listed", interrupted)


async def test_kinds_that_two_requests_read_at_once_are_the_newest(tmp_path: Path) -> None:
    async with on_files(tmp_path) as services, asyncio.timeout(20):
        reads = SlowReads(services)
        _, bootstrap, shown, figures = plane_parts(services)
        plane = ControlPlane(reads, bootstrap, shown, figures)
        at_once, later = threading.Event(), threading.Event()
        at_once.set()
        resumed, resumed_later = asyncio.Event(), asyncio.Event()
        resumed.set()
        reads.waits = [(later, resumed), (at_once, resumed_later)]
        first = asyncio.create_task(plane.catalogue())
        await reads.begun.acquire()
        await services.log.append([record(inputs.applied(definition("gizmos", "Gizmo")))])
        second = asyncio.create_task(plane.catalogue())
        await reads.begun.acquire()
        await asyncio.sleep(0.1)
        # The first request ends its read of the earlier tables when the second one has read the later ones.
        later.set()
        await first
        resumed_later.set()
        assert (await second).resource("example.io", "v1", "gizmos") is not None
        assert (await plane.catalogue()).resource("example.io", "v1", "gizmos") is not None


async def test_watch_after_a_list_reports_the_contents_of_a_namespace_created_meanwhile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with on_files(tmp_path) as services:
        app = create_app(services, lambda: NOW_MS)
        async with kube_client(services, app) as client:
            created = list[int]()

            async def create() -> None:
                answer = await client.post("/api/v1/namespaces", json={"metadata": {"name": "late"}})
                created.append(answer.status_code)

            interrupt_list(monkeypatch, app.plane.bootstrap, create)
            body = (await client.get(ACCOUNTS)).json()
            query = {"watch": "1", "timeoutSeconds": "1"}
            answer = await client.get(ACCOUNTS, params=query | {"resourceVersion": version(body)})
    assert created == [201]
    known = [item["metadata"]["namespace"] for item in body["items"]]
    known += [json.loads(line)["object"]["metadata"]["namespace"] for line in answer.text.splitlines()]
    assert "late" in known


async def test_list_that_overlaps_with_a_write_has_the_number_of_its_newest_object(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with on_files(tmp_path) as services:
        app = create_app(services, lambda: NOW_MS)
        async with kube_client(services, app) as client:
            await client.post("/api/v1/namespaces", json={"metadata": {"name": "known"}})
            created = list[int]()

            async def create() -> None:
                body = {"metadata": {"name": "late"}}
                answer = await client.post("/api/v1/namespaces/default/serviceaccounts", json=body)
                labels = {"metadata": {"labels": {"tier": "1"}}}
                assert (await client.patch("/api/v1/namespaces/known", json=labels, headers=MERGE)).is_success
                created.append(answer.status_code)

            interrupt_list(monkeypatch, app.plane.bootstrap, create)
            body = (await client.get(ACCOUNTS)).json()
    assert created == [201]
    assert int(version(body)) >= max(int(version(item)) for item in body["items"])
