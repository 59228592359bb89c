"""A batch over several partitions whose last record need not have the highest number, as on Kafka."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence

import pytest
from msgspec import Struct

from engine.kubeapi.errors.status_objects import StatusError
from engine.log.local import MemoryLog
from engine.writing import mutations
from engine.writing.mutations import Action, Edited, Problem, Written
from engine.writing.object_changes import Change, Removal
from engine.writing.write_api import ProjectedObjects, WriteApi
from events import times
from events.kube_objects import KubeObject
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


class ExactObjects(ProjectedObjects):
    """Objects of views that never fold more than they were asked to wait for."""

    def __init__(self, projector: Projector) -> None:
        super().__init__(projector)
        self._projector = projector
        self._turn = asyncio.Lock()

    async def settle(self, number: int) -> None:
        async with self._turn:
            await self._projector.fold_to(number)


@pytest.fixture
async def write_api() -> AsyncIterator[WriteApi]:
    log = ScatteredLog()
    store = await asyncio.to_thread(Store)
    projector = await asyncio.to_thread(Projector, log, store, manifests.check)
    ids = (f"id-{count}" for count in itertools.count())
    try:
        yield WriteApi(log, ExactObjects(projector), lambda: NOW_MS, lambda: next(ids))
    finally:
        projector.close()
        await asyncio.to_thread(store.close)


def _target(name: str) -> mutations.Target:
    return mutations.Target(api_version="v1", kind="ConfigMap", namespace="default", name=name)


class Creation(Struct, frozen=True):
    name: str

    def apply(self, live: KubeObject | None) -> Edited:
        if live is not None:
            raise StatusError(409, "AlreadyExists", f"{self.name} exists")
        return Edited(KubeObject(manifest("v1", "ConfigMap", self.name, "default")))


def _created(name: str) -> Change:
    return Change(target=_target(name), edit=Creation(name))


def _deleted(name: str) -> Removal:
    return Removal(target=_target(name), now_ms=NOW_MS)


def _actions(answers: Sequence[Written | Problem]) -> set[Action | Problem]:
    return {answer.mutated.action if isinstance(answer, Written) else answer for answer in answers}


async def test_objects_created_and_deleted_together_do_not_conflict(write_api: WriteApi) -> None:
    created = await asyncio.gather(*(write_api.change(_created(name), source=SOURCE) for name in NAMES))
    assert _actions(created) == {Action.CREATED}

    deleted = await asyncio.gather(*(write_api.change(_deleted(name), source=SOURCE) for name in NAMES))
    assert _actions(deleted) == {Action.DELETED}
