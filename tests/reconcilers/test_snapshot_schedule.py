"""When a worker stores snapshots: after many records, or after few and some time, but not while keys wait."""

import asyncio
from collections.abc import Sequence

import pytest

from engine.log import local
from engine.process.replica import clock_ms
from engine.reconcilers import snapshot_schedule, snapshots, worker
from events import topics
from tests.background import background
from tests.builders.inputs import deployment, key
from tests.reconcilers.snapshot_stories import begun, restarted, storage_of
from tests.simulation import world


class SignallingSnapshots(world.MemorySnapshots):
    """A snapshot store that signals each write."""

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def write(self, number: int, parts: Sequence[bytes]) -> None:
        super().write(number, parts)
        self._loop.call_soon_threadsafe(self.written.set)


class FullDisk(world.MemorySnapshots):
    """A snapshot store whose writes fail."""

    def write(self, number: int, parts: Sequence[bytes]) -> None:
        raise OSError(28, f"no space left for snapshot {number} in {len(parts)} parts")


async def test_full_disk_stops_nothing() -> None:
    story = await begun(kept=FullDisk())
    await story.worker.store_snapshot()
    await story.submit(deployment("web1", 5))
    assert story.placed(key("web1")) == {"member1": 5, "member2": 5}


async def test_snapshot_is_due_after_many_records_or_after_few_and_some_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snapshot_schedule, "SNAPSHOT_RECORDS", 300)
    monkeypatch.setattr(snapshot_schedule, "SNAPSHOT_RECORDS_MIN", 30)
    kept = world.MemorySnapshots()
    story = await begun(kept=kept)
    kept.snapshots.clear()
    await story.submit(*(deployment(f"web{index}", 3) for index in range(10)))
    assert kept.numbers() == []
    await story.pass_ms(snapshot_schedule.SNAPSHOT_INTERVAL_MS)
    assert len(kept.numbers()) == 1
    await story.submit(*(deployment(f"web{index}", 4) for index in range(100)))
    assert len(kept.numbers()) == 2
    number = kept.numbers()[0]
    await story.pass_ms(snapshot_schedule.SNAPSHOT_INTERVAL_MS)
    assert kept.numbers()[0] == number


async def test_restart_without_new_records_stores_no_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_schedule, "SNAPSHOT_RECORDS_MIN", 30)
    kept = world.MemorySnapshots()
    story = await begun(kept=kept)
    await story.worker.store_snapshot()
    (number,) = kept.numbers()
    await restarted(story, kept)
    await story.pass_ms(snapshot_schedule.SNAPSHOT_INTERVAL_MS)
    assert kept.numbers() == [number]


@pytest.mark.parametrize(("records_max", "is_in_storm"), [(10_000, False), (600, True)])
async def test_snapshot_waits_for_the_end_of_a_storm_unless_it_has_too_many_records(
    records_max: int, is_in_storm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "BUDGET", 1)
    monkeypatch.setattr(snapshot_schedule, "SNAPSHOT_RECORDS", 500)
    monkeypatch.setattr(snapshot_schedule, "SNAPSHOT_RECORDS_MIN", 500)
    monkeypatch.setattr(snapshot_schedule, "SNAPSHOT_RECORDS_MAX", records_max)
    kept = world.MemorySnapshots()
    story = await begun(kept=kept)
    await story.submit(*(deployment(f"web{index}", 3) for index in range(100)))
    assert story.log.last_number() > 700
    snapshot = await snapshots.newest(story.log, kept, range(topics.SHARDS))
    assert snapshot is not None
    assert is_in_storm == any(shard.state.waiting for shard in snapshot.shards.values())


async def test_idle_worker_wakes_for_its_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_schedule, "SNAPSHOT_RECORDS_MIN", 1)
    monkeypatch.setattr(snapshot_schedule, "SNAPSHOT_INTERVAL_MS", 100)
    kept = SignallingSnapshots()
    async with background(worker.Worker(local.MemoryLog(), clock_ms, storage=storage_of(kept)).run()):
        async with asyncio.timeout(5):
            await kept.written.wait()
    assert kept.snapshots
