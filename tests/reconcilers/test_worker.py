"""The owner of shards: bounded turns, failed appends, cancelled turns, takeovers."""

import asyncio
from collections.abc import Sequence

import anyio
import msgspec
import pytest

from engine.deciders import shard_fold
from engine.deciders.facts import Facts
from engine.deciders.shard_fold import ShardFold
from engine.log import local, port, reading
from engine.proof import verification
from engine.reconcilers import recovery, replay, turns, worker
from events import chain, codec, decisions, rebalance_decisions, times, topics
from events.keys import shard_of
from events.records import Record, StoredRecord
from tests.background import background
from tests.builders.inputs import deployment, joined, key, policy, rebalancer, ref
from tests.builders.manifests import DUPLICATED, on
from tests.deciders.story import Story

WEB = key("web")


class FailingLog(local.MemoryLog):
    """A log whose appends fail: ``fails_before`` times before anything is written, or once after everything is."""

    def __init__(self) -> None:
        super().__init__()
        self.fails_before = 0
        self.fails_after = False

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        if self.fails_before:
            self.fails_before -= 1
            raise port.LogError("the disk is full")
        stored = await super().append(batch)
        if self.fails_after:
            self.fails_after = False
            raise port.OutcomeUnknownError("no answer came")
        return stored


class SlowLog(local.MemoryLog):
    """A log that yields to other tasks in every call; the ``cut``-th call cancels ``scope``."""

    def __init__(self) -> None:
        super().__init__()
        self.scope: anyio.CancelScope | None = None
        self.cut = 0

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        await self._moment()
        return await super().append(batch)

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        await self._moment()
        return await super().read(topic, partition, start, limit)

    async def _moment(self) -> None:
        self.cut -= 1
        if self.scope is not None and self.cut == 0:
            self.scope.cancel()
        await asyncio.sleep(0)


async def begun(log: port.NumberedLog | None = None) -> Story:
    story = Story(log)
    await story.submit(joined("member1"), joined("member2"), policy("p", on("member1", "member2")))
    return story


async def replayed(log: port.NumberedLog, shard: int) -> tuple[ShardFold, Facts]:
    """Return a shard after its recorded steps."""
    return (await replay.rebuild(log, [shard])).shards[shard]


async def ignored(log: port.NumberedLog) -> int:
    """Return the number of decision records without effect."""
    count = 0
    for shard in range(topics.SHARDS):
        links = chain.Chain(shard)
        async for record in reading.of_partition(log, topics.DECISIONS, shard):
            decoded = codec.decode(record)
            assert isinstance(decoded, codec.Decoded)
            links.take(record, decoded.data)
        count += links.ignored
    return count


async def is_proved(log: port.NumberedLog) -> bool:
    return (await verification.verify(log)).is_clean


def state(of: worker.Worker, shard: int) -> bytes:
    return msgspec.json.encode(of.folds[shard].state, order="deterministic")


# --- turns ---


async def test_turn_is_limited_by_its_budget_and_the_rest_comes_first_in_the_next() -> None:
    story = await begun()
    names = [name for name in (f"web{index}" for index in range(6_000)) if shard_of(key(name)) == 0][:450]
    await story.write(*(deployment(name) for name in names))
    turns = [(await story.worker.turn()).processed for _ in range(3)]
    assert turns == [worker.BUDGET, worker.BUDGET, 450 - 2 * worker.BUDGET]
    decided = [decision.key for decision in await story.recorded(decisions.ScheduleDecided)]
    assert decided == sorted(key(name) for name in names)


async def test_steps_and_appends_are_bounded_in_size() -> None:
    appends: list[int] = []

    class CountingLog(local.MemoryLog):
        async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
            appends.append(len(batch))
            return await super().append(batch)

    clusters = [f"member{index}" for index in range(100)]
    story = Story(CountingLog())
    await story.submit(*map(joined, clusters), policy("p", on(scheduling=DUPLICATED)))
    names = [f"web{index}" for index in range(700)]
    own = [name for name in names if shard_of(key(name)) == 0][:60]
    others = [name for name in names if shard_of(key(name)) != 0][:70]

    await story.submit(*map(deployment, own + others))

    steps = [taken for taken in await story.recorded(decisions.StepTaken) if taken.processed]
    one_key = len(clusters) + 10
    assert max(taken.outputs for taken in steps) < shard_fold.OUTPUTS_MAX + one_key
    assert max(appends) <= local.APPENDED_MAX
    assert all(set(story.placed(key(name))) == set(clusters) for name in own + others)
    assert await is_proved(story.log)
    rebuilt = Story(story.log)
    await rebuilt.worker.recover()
    assert rebuilt.worker.folds[0].state.waiting == {}


async def test_remaining_keys_are_decided_before_new_ones() -> None:
    story = await begun()
    names = [name for name in (f"web{index}" for index in range(4_000)) if shard_of(key(name)) == 0][:250]
    newcomer = next(name for name in (f"a{index}" for index in range(100)) if shard_of(key(name)) == 0)
    await story.write(*(deployment(name) for name in names))
    await story.worker.turn()
    await story.write(deployment(newcomer))
    await story.worker.turn()
    decided = [decision.key for decision in await story.recorded(decisions.ScheduleDecided)]
    assert decided[-1] == key(newcomer)
    assert len(decided) == 251


async def test_inputs_of_one_shard_per_turn_are_limited() -> None:
    story = await begun()
    await story.write(*(deployment("web", count) for count in range(1, recovery.OWN_INPUTS_MAX + 2)))
    await story.worker.turn()
    assert story.placed(WEB) == {"member1": 500, "member2": 500}
    assert story.worker.is_behind()
    await story.worker.turn()
    assert story.placed(WEB) == {"member1": 501, "member2": 501}
    assert not story.worker.is_behind()


async def test_turn_without_work_writes_nothing() -> None:
    story = await begun()
    number = story.log.last_number()
    assert await story.worker.turn() == turns.Turn(steps=0, records=0, processed=0)
    assert story.log.last_number() == number


# --- failures ---


async def test_turn_after_a_failed_append_decides_again() -> None:
    log = FailingLog()
    story = await begun(log)
    await story.write(deployment("web", 2))
    log.fails_before = 1
    with pytest.raises(port.LogError, match="disk is full"):
        await story.worker.turn()
    assert story.worker.is_behind()
    await story.settle()
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}
    assert len(await story.recorded(decisions.ScheduleDecided)) == 1
    assert await is_proved(log)


async def test_append_of_unknown_outcome_is_read_back_and_not_repeated() -> None:
    log = FailingLog()
    story = await begun(log)
    await story.write(deployment("web", 2))
    log.fails_after = True
    with pytest.raises(port.OutcomeUnknownError):
        await story.worker.turn()
    await story.settle()
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}
    assert len(await story.recorded(decisions.ScheduleDecided)) == 1
    assert await ignored(log) == 0
    assert await is_proved(log)


async def test_running_worker_survives_a_temporarily_failing_log() -> None:
    log = FailingLog()
    story = await begun(log)
    await story.write(deployment("web", 2))
    log.fails_before = 3
    async with background(story.worker.run()):
        async with asyncio.timeout(5):
            while not await story.recorded(decisions.ScheduleDecided):
                await log.wait(log.last_number())
    assert log.fails_before == 0
    assert await is_proved(log)


@pytest.mark.parametrize("cut", [1, 2, 9, 13, 15, 40, 60])
async def test_cancelled_turn_leaves_nothing_half_done(cut: int) -> None:
    log = SlowLog()
    story = await begun(log)
    await story.write(*(deployment(f"web{index}", 2) for index in range(30)))
    with anyio.CancelScope() as scope:
        log.scope, log.cut = scope, cut
        await story.worker.turn()
    log.scope = None
    await story.settle()
    assert len(await story.recorded(decisions.ScheduleDecided)) == 30
    assert await ignored(log) == 0
    assert await is_proved(log)


# --- owners ---


async def test_recovered_state_equals_the_live_one() -> None:
    story = await begun()
    await story.submit(*(deployment(f"web{index}", 2) for index in range(40)))
    await story.submit(rebalancer("demo", *(ref(f"web{index}") for index in range(40)), ttl_s=60))
    lived = [state(story.worker, shard) for shard in range(topics.SHARDS)]
    for shard in range(topics.SHARDS):
        rebuilt, _ = await replayed(story.log, shard)
        assert msgspec.json.encode(rebuilt.state, order="deterministic") == lived[shard]


async def test_new_owner_begins_a_new_term_in_every_shard() -> None:
    story = await begun()
    before = [fold.state.term for fold in story.worker.folds]
    await story.restart()
    assert [fold.state.term for fold in story.worker.folds] == [term + 1 for term in before]
    steps = [step for step in await story.recorded(decisions.StepTaken) if step.term == before[0] + 1]
    assert [step.shard for step in steps] == list(range(topics.SHARDS))
    assert all(step.processed == step.outputs == 0 for step in steps)


async def test_output_of_a_replaced_owner_has_no_effect() -> None:
    story = await begun()
    stale = story.worker
    await story.restart()
    await story.write(deployment("web", 2))
    await stale.turn()
    assert await ignored(story.log) > 0
    await story.settle()
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    rebuilt, _ = await replayed(story.log, shard_of(WEB))
    assert dict(rebuilt.state.bindings[WEB].clusters) == {"member1": 2, "member2": 2}
    assert await is_proved(story.log)


async def test_timer_is_on_time_although_the_machine_was_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "WAIT_S_MAX", 0.05)
    story = Story()
    await story.submit(joined("member1"), policy("p", on("member1")), deployment("web", 1))
    hour_s = 3_600
    await story.submit(rebalancer("r", ref("web"), ttl_s=hour_s))
    async with background(story.worker.run()):
        await asyncio.sleep(0.02)
        assert not await story.recorded(rebalance_decisions.RebalancerExpired)
        story.now_ms += (hour_s + 1) * times.SECOND_MS
        async with asyncio.timeout(5):
            while not await story.recorded(rebalance_decisions.RebalancerExpired):  # noqa: ASYNC110  # no event for it
                await asyncio.sleep(0.01)
