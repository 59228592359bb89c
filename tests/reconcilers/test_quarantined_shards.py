"""Shards with unreadable records: quarantined and reported while the others continue; retried until readable."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

import pytest

from engine.deciders import cluster_health
from engine.log import port
from engine.proof import verification
from engine.reconcilers import paused_shards, snapshot_storage, worker, worker_metrics
from events import decisions, topics
from events.keys import shard_of
from tests.background import background
from tests.builders.inputs import deployment, health_reported, joined, key, policy, taint_policy, tainted
from tests.builders.manifests import on
from tests.deciders.story import Story
from tests.reconcilers.cutting import CutLog
from tests.rounds import ROUNDS

NAMES = [f"web{index}" for index in range(40)]
WEB = key("web0")
SHARD = shard_of(WEB)
OTHERS = [name for name in NAMES if shard_of(key(name)) != SHARD]
MINE = [name for name in NAMES if shard_of(key(name)) == SHARD]


class MemorySnapshots:
    """Snapshots in memory."""

    def __init__(self) -> None:
        self.snapshots: dict[int, bytes] = {}

    def numbers(self) -> list[int]:
        return sorted(self.snapshots, reverse=True)

    def read(self, number: int) -> bytes:
        return self.snapshots[number]

    def write(self, number: int, parts: Sequence[bytes]) -> None:
        self.snapshots[number] = b"".join(parts)

    def drop(self, number: int) -> None:
        self.snapshots.pop(number, None)


class ShardSnapshots:
    """A snapshot store per shard, as on Kafka."""

    is_shared = False

    def __init__(self) -> None:
        self.kept = {shard: MemorySnapshots() for shard in range(topics.SHARDS)}

    def of(self, shards: Sequence[int]) -> list[tuple[snapshot_storage.SnapshotStore, list[int]]]:
        return [(self.kept[shard], [shard]) for shard in shards]


class Cut(Story):
    """A story on a log that can be cut, with snapshots if ``storage`` is set."""

    def __init__(self, storage: snapshot_storage.SnapshotStorage | None = None) -> None:
        self.cutting = CutLog()
        super().__init__(self.cutting)
        self.storage = storage
        self.worker = worker.Worker(self.log, self.clock, storage=storage)

    def replace_worker(self) -> None:
        """Replace the worker by a new one that has only the log and the snapshots."""
        self.worker = worker.Worker(self.log, self.clock, storage=self.storage)

    async def proved(self) -> None:
        assert (await verification.verify(self.log)).is_clean
        assert {fold.state.shard for fold in self.worker.folds} == set(range(topics.SHARDS))
        assert self.worker.is_steady()
        assert self.worker.unreadable() == {}


async def begun(storage: snapshot_storage.SnapshotStorage | None = None) -> Cut:
    story = Cut(storage)
    await story.submit(joined("member1"), joined("member2"), policy("p", on("member1", "member2")))
    await story.submit(*(deployment(name, 2) for name in NAMES))
    return story


def placed(story: Story) -> dict[str, dict[str, int]]:
    owned = [fold.state.bindings for fold in story.worker.folds]
    return {key: dict(binding.clusters) for bindings in owned for key, binding in bindings.items()}


@pytest.mark.parametrize("topic", [topics.SPECS, topics.LINKS, topics.DECISIONS])
async def test_takeover_without_the_records_of_one_shard_continues_with_the_others(topic: str) -> None:
    story = await begun()
    if topic == topics.LINKS:
        # The partition needs a record that a step covered.
        story.cutting.firsts[topic, SHARD] = 1
        story.cutting.firsts[topics.SPECS, SHARD] = 1
    else:
        story.cutting.cut(topic, SHARD)
    story.replace_worker()
    await story.submit(tainted("member1", "NoExecute"))

    assert placed(story) == {key(name): {"member2": 2} for name in OTHERS}
    (error,) = story.worker.unreadable().values()
    assert "is not kept from 0 on any more" in str(error)
    assert not story.worker.is_steady()

    story.cutting.restore()
    story.now_ms += paused_shards.QUARANTINE_MS
    await story.settle()
    assert placed(story) == {key(name): {"member2": 2} for name in NAMES}
    await story.proved()


async def test_damaged_record_quarantines_only_its_shard() -> None:
    story = await begun()
    story.cutting.damaged.add((topics.SPECS, SHARD, 0))
    story.replace_worker()
    await story.submit(tainted("member1", "NoExecute"))

    assert placed(story) == {key(name): {"member2": 2} for name in OTHERS}
    assert f"specs/{SHARD}/0 is not what was appended" in str(story.worker.unreadable()[SHARD])


async def test_recovery_reports_the_missing_records() -> None:
    story = await begun()
    story.cutting.cut(topics.SPECS, SHARD)
    story.replace_worker()

    with pytest.raises(port.LogCutError, match=f"specs/{SHARD} is not kept"):
        await story.worker.recover()

    assert len(story.worker.folds) == topics.SHARDS - 1


async def test_running_shard_that_lost_unread_records_is_quarantined() -> None:
    story = await begun()
    kept = [fold for fold in story.worker.folds if fold.state.shard != SHARD]
    await story.write(*(deployment(name, 3) for name in NAMES))
    story.cutting.cut(topics.SPECS, SHARD)
    await story.settle()

    # The other shards keep their state in memory.
    assert story.worker.folds == kept
    assert placed(story) == {key(name): {"member1": 3, "member2": 3} for name in OTHERS}
    assert list(story.worker.unreadable()) == [SHARD]

    story.cutting.restore()
    await story.pass_ms(paused_shards.QUARANTINE_MS)
    assert placed(story) == {key(name): {"member1": 3, "member2": 3} for name in NAMES}
    await story.proved()


async def test_deleted_facts_quarantine_only_shards_without_a_newer_snapshot() -> None:
    storage = ShardSnapshots()
    story = await begun(storage)
    await story.worker.store_snapshot()
    storage.kept[SHARD].snapshots.clear()
    story.cutting.cut(topics.CLUSTERS, 0)
    story.replace_worker()
    await story.submit(tainted("member1", "NoExecute"))

    assert placed(story) == {key(name): {"member2": 2} for name in OTHERS}
    assert "clusters/0 is not kept from 0" in str(story.worker.unreadable()[SHARD])


async def test_newer_snapshot_ends_the_quarantine() -> None:
    storage = ShardSnapshots()
    story = await begun(storage)
    await story.worker.store_snapshot()
    lost = storage.kept[SHARD].snapshots
    storage.kept[SHARD].snapshots = {}
    story.cutting.cut(topics.SPECS, SHARD)
    story.replace_worker()
    await story.submit(tainted("member1", "NoExecute"))
    assert list(story.worker.unreadable()) == [SHARD]

    storage.kept[SHARD].snapshots = lost
    await story.pass_ms(paused_shards.QUARANTINE_MS)

    assert placed(story) == {key(name): {"member2": 2} for name in NAMES}
    assert story.worker.is_steady()


async def test_snapshot_before_the_first_stored_record_is_skipped_and_kept() -> None:
    storage = ShardSnapshots()
    story = await begun(storage)
    await story.worker.store_snapshot()
    await story.submit(*(deployment(name, 3) for name in MINE))
    story.cutting.cut(topics.DECISIONS, SHARD)
    story.replace_worker()
    await story.settle()

    assert f"decisions/{SHARD} is not kept" in str(story.worker.unreadable()[SHARD])
    assert storage.kept[SHARD].snapshots

    story.cutting.restore()
    await story.pass_ms(paused_shards.QUARANTINE_MS)
    await story.proved()


async def test_snapshot_of_all_shards_is_not_replaced_by_an_incomplete_one() -> None:
    kept = MemorySnapshots()
    story = await begun(snapshot_storage.SingleSnapshotStorage(kept))
    await story.worker.store_snapshot()
    before = dict(kept.snapshots)
    await story.write(*(deployment(name, 3) for name in NAMES))
    story.cutting.cut(topics.SPECS, SHARD)
    await story.settle()

    await story.worker.store_snapshot()

    assert kept.snapshots == before


async def test_retry_pause_doubles_up_to_a_limit_and_ends_with_another_assignment() -> None:
    story = await begun()
    story.cutting.cut(topics.SPECS, SHARD)
    story.replace_worker()
    await story.settle()
    pause_ms = paused_shards.QUARANTINE_MS
    for _ in range(8):
        story.now_ms += pause_ms - 1
        assert not story.worker.is_behind()
        story.now_ms += 1
        assert story.worker.is_behind()
        await story.settle()
        pause_ms = min(2 * pause_ms, paused_shards.QUARANTINE_MS_MAX)
    assert pause_ms == paused_shards.QUARANTINE_MS_MAX

    story.cutting.restore()
    story.worker.assign(range(topics.SHARDS))
    await story.settle()
    await story.proved()


async def test_quarantine_is_shown_in_the_metrics_of_its_shard() -> None:
    story = await begun()
    story.cutting.cut(topics.SPECS, SHARD)
    story.replace_worker()
    await story.settle()

    shown = {
        sample.labels["shard"]: sample.value
        for metric in worker_metrics.WorkerMetrics(story.worker, story.log).collect()
        for sample in metric.samples
        if sample.name == "reballast_worker_unreadable"
    }
    assert shown == {str(shard): int(shard == SHARD) for shard in range(topics.SHARDS)}


async def test_running_worker_retries_quarantined_shards() -> None:
    story = await begun()
    story.cutting.cut(topics.SPECS, SHARD)
    story.replace_worker()
    async with background(story.worker.run()):
        async with asyncio.timeout(20):
            while not story.worker.unreadable():  # noqa: ASYNC110  # there is no event for it
                await asyncio.sleep(0)
            story.cutting.restore()
            story.now_ms += paused_shards.QUARANTINE_MS
            await story.write(deployment("web0", 3))
            while not story.worker.is_steady() or story.worker.is_behind():  # noqa: ASYNC110  # as above
                await asyncio.sleep(0)
    assert placed(story)[WEB] == {"member1": 3, "member2": 3}
    await story.proved()


@pytest.mark.parametrize("seed", range(5 * ROUNDS))
async def test_every_input_is_decided_once_after_random_cuts_and_restores(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # moves of a test
    storage = ShardSnapshots()
    story = await begun(storage)
    for _ in range(40):
        match chance.randrange(7):
            case 0:
                topic = chance.choice([*topics.OWN_TOPICS, topics.DECISIONS, *topics.FACT_TOPICS])
                partition = 0 if topic in topics.FACT_TOPICS else chance.randrange(topics.SHARDS)
                story.cutting.cut(topic, partition)
            case 1:
                story.cutting.restore()
            case 2:
                story.replace_worker()
            case 3:
                with suppress(port.LogError):
                    await story.worker.store_snapshot()
            case 4:
                await story.write(tainted(chance.choice(["member1", "member2"]), "NoSchedule"))
            case _:
                await story.write(*(deployment(chance.choice(NAMES), chance.randint(1, 9)) for _ in range(5)))
        story.now_ms += chance.choice([10, paused_shards.QUARANTINE_MS, paused_shards.QUARANTINE_MS_MAX])
        for _ in range(3):
            with suppress(port.LogError):
                await story.worker.turn()

    story.cutting.restore()
    await story.pass_ms(paused_shards.QUARANTINE_MS_MAX)
    await story.proved()
    assert await story.recorded(decisions.ScheduleDecided)


async def test_quarantined_shard_does_not_block_the_emptying_of_other_clusters_forever() -> None:
    names = [f"member{index}" for index in range(1, 6)]
    first, second = "member3", "member5"
    assert shard_of(first) == SHARD
    story = await begun()
    await story.submit(*(joined(name) for name in names), taint_policy("failing"))
    await story.submit(health_reported(first, ready=False), health_reported(second, ready=False))
    story.cutting.cut(topics.SPECS, SHARD)
    story.replace_worker()
    await story.settle()
    await story.pass_ms(cluster_health.CONFIRM_MS + cluster_health.STUCK_MS + cluster_health.PACE_MS)

    assert list(story.worker.unreadable()) == [SHARD]
    fleet = {name: story.worker.facts.fleet.get(name) for name in (first, second)}
    assert {name: bool(cluster and cluster.spec.taints) for name, cluster in fleet.items()} == {
        first: False,
        second: True,
    }
