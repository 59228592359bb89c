"""Snapshots: a restart from one gives the same state as the whole log, or discards the snapshot."""

import asyncio
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.deciders import placement_cache
from engine.deciders.facts import Facts, FactsState
from engine.deciders.shard_fold import ShardFold
from engine.log import local, port, sqlite
from engine.process import installation
from engine.proof import verification
from engine.reconcilers import replay, snapshot_storage, snapshots, worker
from engine.simulation import defaults
from events import decisions, policies, rebalance_decisions, records, release, shapes, topics
from events.keys import shard_of
from events.records import StoredRecord
from tests.builders.inputs import (
    deployment,
    joined,
    key,
    override,
    policy,
    priority_class,
    rebalancer,
    ref,
)
from tests.builders.manifests import images, on
from tests.reconcilers.snapshot_stories import begun, restarted, storage_of
from tests.simulation import world
from tests.simulation.moves import playing

OWNED = range(topics.SHARDS)


class CountingLog(local.MemoryLog):
    """Counts the records that are read from partitions."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        stored = await super().read(topic, partition, start, limit)
        self.count += len(stored)
        return stored


def whole(fold: ShardFold, facts: Facts) -> tuple[object, ...]:
    """Return the whole state of a shard and its facts, with the derived indexes."""
    kept = msgspec.json.encode([fold.state, fold.ends, fold.inputs, facts.state])
    indexes = {name: index for name, index in vars(fold.indexes).items() if not name.startswith("_")}
    indexes["templates"] = set(fold.indexes.templates.of_kind("apps/v1", "Deployment"))
    return kept, fold.next_timer_ms(), indexes, facts.fleet.names(), len(facts.policies)


async def differing(log: port.NumberedLog, kept: snapshot_storage.SnapshotStore) -> list[int]:
    """Return the shards whose state from the newest snapshot differs from that of the whole log."""
    snapshot = await snapshots.newest(log, kept, OWNED)
    assert snapshot is not None
    restored = (await replay.rebuild(log, OWNED, snapshot)).shards
    rebuilt = (await replay.rebuild(log, OWNED)).shards
    return [shard for shard in OWNED if whole(*restored[shard]) != whole(*rebuilt[shard])]


async def read_by_a_restart(log: CountingLog, kept: snapshot_storage.SnapshotStore | None) -> int:
    log.count = 0
    await worker.Worker(log, lambda: world.START_MS, storage=storage_of(kept)).recover()
    return log.count


# --- equality ---


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(5, 40))
def test_state_from_a_snapshot_equals_that_of_the_whole_log(seed: int, count: int) -> None:
    async def story() -> None:
        played = world.World(seed)
        await played.start()
        await playing.play(played, count)
        await played.worker.store_snapshot()
        number = played.kept.numbers()[0]
        old = world.MemorySnapshots()
        old.write(number, [played.kept.read(number)])
        assert await differing(played.log, old) == []
        await playing.play(played, count)
        assert await differing(played.log, old) == []
        assert (await verification.verify(played.log)).is_clean

    asyncio.run(story())


async def test_waiting_keys_and_timers_are_restored() -> None:
    kept = world.MemorySnapshots()
    story = await begun(kept=kept)
    await story.submit(rebalancer("demo", ref("web1"), ref("web2"), ttl_s=60))
    names = [name for name in (f"late{index}" for index in range(4_000)) if shard_of(key(name)) == 0][:250]
    await story.write(*(deployment(name) for name in names))
    await story.worker.store_snapshot()
    assert len(story.worker.folds[0].state.waiting) == len(names) - worker.BUDGET
    assert await differing(story.log, kept) == []
    await restarted(story, kept)
    assert len({decision.key for decision in await story.recorded(decisions.ScheduleDecided)}) == 20 + len(
        names
    )
    await story.pass_s(61)
    assert len(await story.recorded(rebalance_decisions.RebalancerExpired, "demo")) == 1


async def test_raw_placements_are_restored_byte_for_byte() -> None:
    kept = world.MemorySnapshots()
    story = await begun(kept=kept)
    spaced = policy("spaced", on("member1"))
    raw = msgspec.Raw(bytes(spaced.manifest).replace(b'"placement":{', b'"placement": {  '))
    await story.submit(msgspec.structs.replace(spaced, manifest=raw))
    await story.worker.store_snapshot()
    loaded = await snapshots.newest(story.log, kept, range(topics.SHARDS))
    assert loaded is not None
    assert b'"placement":{  ' in msgspec.json.encode(loaded.facts.state)
    assert await differing(story.log, kept) == []


async def test_restored_facts_do_not_keep_the_snapshot_in_memory() -> None:
    story = await begun()
    fields = msgspec.Raw(b'{"f:spec":{"f:region":{}}}')
    owner = shapes.FieldsOwner(manager="kubectl", operation="Update", api_version="v1", fields_v1=fields)
    await story.submit(msgspec.structs.replace(joined("member1"), managed_fields=(owner,)))
    await story.submit(policy("web"), override("web", images("v2")))
    stored = msgspec.json.encode(story.worker.facts.state)
    count = sys.getrefcount(stored)
    facts = Facts(msgspec.json.decode(stored, type=FactsState))
    assert sys.getrefcount(stored) == count
    assert facts.members["member1"].spec.managed_fields == (owner,)


@pytest.mark.parametrize("stored_at", range(4))
async def test_restored_shards_drop_the_same_placements(
    monkeypatch: pytest.MonkeyPatch, stored_at: int
) -> None:
    monkeypatch.setattr(placement_cache, "_COUNT_MIN", 3)
    kept = world.MemorySnapshots()
    story = await begun(kept=kept)
    for number in range(8):
        await story.submit(policy("p", on("member1", f"other{number}")))
        if number == stored_at:
            await story.worker.store_snapshot()
    assert await differing(story.log, kept) == []


# --- the tail ---


async def test_restart_reads_only_records_after_the_snapshot() -> None:
    log, kept = CountingLog(), world.MemorySnapshots()
    story = await begun(log, kept)
    await story.worker.store_snapshot()
    tail_from = log.last_number()
    await story.submit(deployment("web1", 5))
    tail = log.last_number() - tail_from
    # Besides the tail, one step per shard is read, to check that the snapshot fits.
    assert await read_by_a_restart(log, kept) <= tail + topics.SHARDS < await read_by_a_restart(log, None)


async def test_owner_continues_after_a_restart_from_a_snapshot() -> None:
    kept = world.MemorySnapshots()
    story = await begun(kept=kept)
    await story.worker.store_snapshot()
    await story.submit(deployment("web1", 5))
    await restarted(story, kept)
    await story.submit(deployment("web2", 7))
    assert story.placed(key("web1")) == {"member1": 5, "member2": 5}
    assert story.placed(key("web2")) == {"member1": 7, "member2": 7}
    assert (await verification.verify(story.log)).is_clean


async def test_redeclared_priority_class_has_equal_bytes_after_a_restart_from_a_snapshot() -> None:
    kept = world.MemorySnapshots()
    story = await begun(kept=kept)
    await story.submit(priority_class("urgent", 1000))
    await story.worker.store_snapshot()
    await restarted(story, kept)
    # A foreign event makes the owner declare the class again, from the values that the snapshot's decoder
    # created.
    await story.submit(policies.PriorityClassGone(name="urgent"))
    assert len(await story.recorded(policies.PriorityClassDeclared)) == 2
    assert (await verification.verify(story.log)).findings == []


# --- discarded snapshots ---


async def test_damaged_snapshot_is_discarded() -> None:
    kept = world.MemorySnapshots()
    story = await begun(kept=kept)
    await story.worker.store_snapshot()
    (number,) = kept.numbers()
    good = kept.read(number)
    for at in (*range(120), *range(120, len(good), len(good) // 50), len(good) - 1):
        kept.snapshots = {number: good}
        kept.damage(number, at)
        assert await snapshots.newest(story.log, kept, OWNED) is None
        assert kept.numbers() == []
    for length in (0, 1, 16, 100, len(good) - 1):
        kept.snapshots = {number: good[:length]}
        assert await snapshots.newest(story.log, kept, OWNED, discards=False) is None
        assert kept.numbers() == [number], "another process may still use it"


async def test_older_snapshot_replaces_a_damaged_newest_one() -> None:
    log, kept = CountingLog(), world.MemorySnapshots()
    story = await begun(log, kept)
    for index in range(3):
        await story.submit(deployment(f"web{index}", 9))
        await story.worker.store_snapshot()
    newest, older = kept.numbers()
    kept.damage(newest, 1_000)
    assert await differing(log, kept) == []
    assert kept.numbers() == [older]
    assert await read_by_a_restart(log, kept) < log.last_number()


async def test_snapshot_ahead_of_the_log_is_discarded() -> None:
    kept = world.MemorySnapshots()
    story = await begun(kept=kept)
    entries = await story.log.read_all(0, story.log.last_number())
    await story.submit(deployment("web1", 5))
    await story.worker.store_snapshot()
    shorter = local.MemoryLog()
    await shorter.append(
        [
            records.record(record.topic, record.partition, record.key, dict(record.headers), record.value)
            for record in entries
        ]
    )
    assert await snapshots.newest(shorter, kept, OWNED) is None
    assert kept.numbers() == []


async def test_snapshot_of_another_log_is_discarded() -> None:
    kept = world.MemorySnapshots()
    story = await begun(kept=kept)
    await story.worker.store_snapshot()
    other = await begun()
    await other.submit(*(deployment(f"other{index}", 2) for index in range(100)))
    assert await snapshots.newest(other.log, kept, OWNED) is None


async def test_snapshot_of_another_release_is_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = world.MemorySnapshots()
    story = await begun(kept=kept)
    await story.worker.store_snapshot()
    monkeypatch.setattr(release, "RELEASE", "another")
    assert await snapshots.newest(story.log, kept, OWNED) is None


async def test_snapshot_of_fewer_shards_is_discarded() -> None:
    kept = world.MemorySnapshots()
    log = local.MemoryLog()
    few = worker.Worker(log, lambda: world.START_MS, range(3), storage_of(kept))
    await few.store_snapshot()
    assert await snapshots.newest(log, kept, range(3)) is not None
    assert await snapshots.newest(log, kept, OWNED) is None


# --- files ---


async def test_orderly_shutdown_writes_a_snapshot_for_the_next_start(
    tmp_path: Path,
) -> None:
    files = snapshot_storage.SnapshotFiles(tmp_path)
    for count in (1, 2, 2):
        async with installation.opened(tmp_path, defaults.three_members(0), synchronous="OFF") as running:
            await running.await_idle()
        assert len(await asyncio.to_thread(files.numbers)) == count
    log = await sqlite.SqliteLog.open(tmp_path)
    try:
        assert await differing(log, files) == []
        assert (await verification.verify(log)).is_clean
    finally:
        await log.aclose()


def test_incomplete_snapshot_file_is_ignored(tmp_path: Path) -> None:
    files = snapshot_storage.SnapshotFiles(tmp_path)
    (tmp_path / "snapshot.bin.tmp").write_bytes(b"half")
    (tmp_path / "snapshot-old.bin").write_bytes(b"somebody's")
    assert files.numbers() == []
    files.write(7, [b"a", b"b"])
    files.write(12, [b"c"])
    assert files.numbers() == [12, 7]
    assert files.read(7) == b"ab"
    files.drop(7)
    files.drop(7)
    assert files.numbers() == [12]


async def test_owner_recovers_from_the_log_if_snapshots_are_unreadable() -> None:
    class Unreadable(world.MemorySnapshots):
        def numbers(self) -> list[int]:
            raise OSError("the brokers do not answer")

    kept = Unreadable()
    story = await begun(kept=kept)
    await restarted(story, kept)
    assert story.placed(key("web1")) == {"member1": 2, "member2": 2}
