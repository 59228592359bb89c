"""Invariant 2: equal logs give equal tables, byte for byte, for every batching of the fold."""

import asyncio
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from engine.log.local import MemoryLog
from events import clusters, specs
from events.records import StoredRecord
from events.validation import manifests
from projections.as_of_views import AsOfViews
from projections.port import ProjectionError, ResultRow
from projections.runner import Projector
from projections.store import FILE, Store
from tests.background import background
from tests.builders.inputs import deleted, deployment, ref, template
from tests.builders.manifests import CLUSTER_ROLE, raw
from tests.projections.logs import RecordBuilder
from tests.projections.stories import Story, owner

Dump = dict[str, list[ResultRow]]


async def a_log(seed: int, happenings: int = 100) -> MemoryLog:
    story, log = Story(seed), MemoryLog()
    await log.append(story.opening())
    for _ in range(happenings):
        await log.append(story.more())
    return log


async def fold(log: MemoryLog, store: Store, number: int, batch: int = 4_096) -> Dump:
    projector = Projector(log, store, manifests.check, batch_records_max=batch)
    await projector.fold_to(number)
    projector.close()
    return await asyncio.to_thread(store.dump)


@pytest.fixture
def store() -> Iterator[Store]:
    tables = Store()
    yield tables
    tables.close()


@pytest.mark.parametrize("seed", range(12))
async def test_batches_and_restarts_give_equal_tables(seed: int, tmp_path: Path, store: Store) -> None:
    log = await a_log(seed)
    chance = random.Random(seed)  # noqa: S311  # a seed makes it the same each time
    at_once = await fold(log, store, log.last_number())

    folded, in_pieces = 0, {}
    while folded < log.last_number():
        folded = min(folded + chance.randrange(1, 80), log.last_number())
        piecewise = await asyncio.to_thread(Store, tmp_path / FILE)
        in_pieces = await fold(log, piecewise, folded, batch=chance.randrange(1, 30))
        await asyncio.to_thread(piecewise.close)
    assert in_pieces == at_once
    assert all(in_pieces[name] for name in ("objects", "bindings", "clusters", "works", "timeline", "steps"))


@pytest.mark.parametrize("is_written_again", [False, True])
async def test_deletion_shows_the_last_status(
    store: Store, tmp_path: Path, *, is_written_again: bool
) -> None:
    builder, log = RecordBuilder(), MemoryLog()
    status = specs.TemplateStatusWritten(
        template=ref("web"), status={"bars": raw(3)}, managed_fields=(owner(7),)
    )
    deletion = specs.TemplateDeleted(template=ref("web"))
    events = [deployment("web", 2), status, *([deployment("web", 4)] if is_written_again else []), deletion]
    await log.append([builder.input(event) for event in events])
    one_by_one = await asyncio.to_thread(Store, tmp_path / FILE)

    at_once = await fold(log, store, log.last_number())
    assert await fold(log, one_by_one, log.last_number(), batch=1) == at_once
    body = msgspec.json.decode(at_once["changes"][-1][-1])
    assert body["status"] == {"bars": 3}
    assert [field["manager"] for field in body["metadata"]["managedFields"]] == ["controller-7"]
    await asyncio.to_thread(one_by_one.close)


async def test_object_of_another_name_that_gets_the_same_key_is_shown_by_its_name(
    store: Store, tmp_path: Path
) -> None:
    builder, log = RecordBuilder(), MemoryLog()
    await log.append([builder.input(template("system:web", CLUSTER_ROLE))])
    later = await asyncio.to_thread(Store, tmp_path / FILE)
    await fold(log, later, log.last_number())
    # Names of bindings have a dot instead of the colon, so both roles have one key.
    renamed = deleted("system:web", CLUSTER_ROLE), template("system.web", CLUSTER_ROLE)
    await log.append([builder.input(event) for event in renamed])

    in_one_batch = await fold(log, later, log.last_number())
    assert in_one_batch == await fold(log, store, log.last_number(), batch=1)
    assert [row[4] for row in in_one_batch["objects"]] == ["system.web"]
    await asyncio.to_thread(later.close)


async def test_as_of_view_equals_the_views_at_that_number(store: Store) -> None:
    log = await a_log(seed=5)
    middle = log.last_number() // 2
    then = await fold(log, store, middle)
    moments = AsOfViews(log, manifests.check)

    for number in (middle - 20, middle, middle):
        async with moments.at(number) as moment:
            past = await asyncio.to_thread(moment.dump)

    assert past == then
    await moments.close()


async def test_views_of_another_log_are_refused(store: Store) -> None:
    log = await a_log(seed=1)
    other = await a_log(seed=3, happenings=200)
    await fold(log, store, log.last_number())

    with pytest.raises(ProjectionError, match="another log"):
        await fold(other, store, other.last_number())


async def test_cancelled_fold_changes_nothing(store: Store, tmp_path: Path) -> None:
    log = await a_log(seed=2)
    whole = await fold(log, store, log.last_number())
    interrupted = await asyncio.to_thread(Store, tmp_path / FILE)
    projector = Projector(log, interrupted, manifests.check, batch_records_max=7)

    for _ in range(20):
        async with background(projector.run()):
            await asyncio.sleep(0.0005)
    await projector.fold_to(log.last_number())

    assert await asyncio.to_thread(interrupted.dump) == whole
    projector.close()
    await asyncio.to_thread(interrupted.close)


async def test_failed_batch_is_folded_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    log = await a_log(seed=4)
    other = await asyncio.to_thread(Store)
    whole = await fold(log, other, log.last_number())
    projector = Projector(log, store, manifests.check, batch_records_max=50)
    await projector.fold_to(60)

    with monkeypatch.context() as patch:
        patch.setattr(store.writer, "write", _disk_full)
        with pytest.raises(OSError, match="full"):
            await projector.fold_to(log.last_number())
    await projector.fold_to(log.last_number())

    assert await asyncio.to_thread(store.dump) == whole
    projector.close()
    await asyncio.to_thread(other.close)


def _disk_full(*_: object) -> None:
    raise OSError("the disk is full")


class ShortLog(MemoryLog):
    """Returns few records of a partition per read, as Kafka does."""

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        return await super().read(topic, partition, start, min(limit, 3))


class LargeLog(ShortLog):
    """Makes the values of records at each read, as a log on disk does; ``held`` is the memory in use, at most."""

    def __init__(self) -> None:
        super().__init__()
        self.held = 0

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        stored = await super().read(topic, partition, start, limit)
        self.held = max(self.held, tracemalloc.get_traced_memory()[0])
        return [structs.replace(record, value=record.value + bytes(1_000_000)) for record in stored]


async def test_memory_of_a_restart_does_not_grow_with_the_records_before(store: Store) -> None:
    builder, log = RecordBuilder(), LargeLog()
    await log.append([builder.input(clusters.ClusterJoined(name=f"member{index}")) for index in range(40)])
    await fold(log, store, 39)
    tracemalloc.start()
    try:
        await fold(log, store, 40)
    finally:
        tracemalloc.stop()
    assert 0 < log.held < 15_000_000


async def test_repetition_is_recognised_after_a_restart_with_short_reads(
    store: Store, tmp_path: Path
) -> None:
    builder, log = RecordBuilder(), ShortLog()
    records = [builder.input(clusters.ClusterJoined(name=f"member{index}")) for index in range(10)]
    await log.append(records)
    restarted = await asyncio.to_thread(Store, tmp_path / FILE)
    before = await fold(log, restarted, log.last_number())
    # The ninth input is repeated; the first short read does not reach it.
    await log.append([records[8]])

    after = await fold(log, restarted, log.last_number())
    assert after == await fold(log, store, log.last_number())
    assert after["clusters"] == before["clusters"]
    await asyncio.to_thread(restarted.close)
