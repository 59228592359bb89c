"""Shards that follow their log: the same as rebuilt ones, at the cost of what is new."""

import msgspec
import pytest

from engine.deciders.shard_fold import ShardFold
from engine.plans import fork_log
from engine.plans.fork import Fork
from engine.plans.recorded_shards import RecordedShards
from tests.builders.inputs import deployment
from tests.deciders.story import Story
from tests.plans.worlds import PLANNED, decided, rested
from tests.proof import logs
from tests.proof.logs import CountingLog

_HORIZON_MS = 900_000


def states(folds: list[ShardFold]) -> list[bytes]:
    return [msgspec.json.encode((fold.state, fold.ends, fold.inputs, fold.queued)) for fold in folds]


@pytest.mark.parametrize("seed", range(5))
async def test_followed_shards_are_those_that_are_rebuilt(seed: int) -> None:
    played = await rested(seed)
    shards = RecordedShards()
    for _ in range(3):
        forked = await fork_log.fork(played.log)
        followed, rebuilt = Fork(forked, (), played.now_ms, shards), Fork(forked, (), played.now_ms)
        await followed.start()
        await rebuilt.start()
        assert states(shards.folds) == states(rebuilt.shards.folds)
        assert msgspec.json.encode(followed.before) == msgspec.json.encode(rebuilt.before)
        await played.chance.choice(PLANNED)(played)
        await played.settle(_HORIZON_MS)
    outcomes: list[list[object]] = []
    for recorded in (RecordedShards(), shards):
        forked = await fork_log.fork(played.log)
        fork = Fork(forked, (), played.now_ms, recorded)
        await fork.start()
        await fork.run([], [], _HORIZON_MS)
        outcomes.append([decided(forked.added), states(fork.worker.folds)])
    assert outcomes[0] == outcomes[1]


async def test_cost_of_following_is_the_same_however_long_the_history() -> None:
    costs: list[int] = []
    for edits in (10, 80):
        log = CountingLog()
        story = Story(log)
        await logs.play(story)
        for index in range(edits):
            await story.submit(deployment("web", 6 + index % 2))
        shards = RecordedShards()
        await shards.follow(await fork_log.fork(log))
        await story.submit(deployment("web", 9))
        log.returned = 0
        await shards.follow(await fork_log.fork(log))
        costs.append(log.returned)
    assert 0 < costs[1] == costs[0]
