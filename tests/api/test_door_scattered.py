"""A batch over several partitions whose last record need not have the highest number, as on Kafka."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence

import pytest

from engine.kubeapi.errors.status_objects import StatusError
from engine.log.memory import MemoryLog
from engine.writing import object_changes, stored_objects, targets
from engine.writing.write_api import WriteApi
from events import times
from events.records import Record, StoredRecord
from events.validation import manifests
from projections.runner import Projector
from projections.store import Store
from tests.builders.manifests import manifest

NAMES = [f"web-{number}" for number in range(8)]
SOURCE = "/test"
NOW_MS = times.from_text("2026-01-01T00:00:00Z")


class ScatteredLog(MemoryLog):
    """A log that gives the first record of a batch the highest number."""

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        return (await super().append(batch[::-1]))[::-1]


class ExactViews(stored_objects.StoredViews):
    """Views that never fold more than they were asked to wait for."""

    def __init__(self, projector: Projector) -> None:
        super().__init__(projector)
        self._projector = projector
        self._turn = asyncio.Lock()

    async def settle(self, number: int) -> None:
        async with self._turn:
            await self._projector.fold_to(number)


@pytest.fixture
async def door() -> AsyncIterator[WriteApi]:
    log = ScatteredLog()
    store = await asyncio.to_thread(Store)
    projector = await asyncio.to_thread(Projector, log, store, manifests.check)
    ids = (f"id-{count}" for count in itertools.count())
    try:
        yield WriteApi(log, ExactViews(projector), lambda: NOW_MS, lambda: next(ids))
    finally:
        projector.close()
        await asyncio.to_thread(store.close)


def _target(name: str) -> targets.Target:
    return targets.Target(api_version="v1", kind="ConfigMap", namespace="default", name=name)


def _created(name: str) -> object_changes.Change:
    def compute(live: object_changes.Json | None) -> object_changes.Json:
        if live is not None:
            raise StatusError(409, "AlreadyExists", f"{name} exists")
        return manifest("v1", "ConfigMap", name, "default")

    return object_changes.Change(target=_target(name), compute=compute)


def _deleted(name: str) -> object_changes.Removal:
    return object_changes.Removal(target=_target(name), precheck=lambda _live: None, now_ms=NOW_MS)


async def test_objects_created_and_deleted_together_do_not_conflict(door: WriteApi) -> None:
    created = await asyncio.gather(
        *(door.change(_created(name), dry_run=False, source=SOURCE) for name in NAMES)
    )
    assert {each.action for each in created} == {"created"}

    deleted = await asyncio.gather(
        *(door.change(_deleted(name), dry_run=False, source=SOURCE) for name in NAMES)
    )
    assert [each.problem for each in deleted] == [None] * len(NAMES)
    assert {each.action for each in deleted} == {"deleted"}
