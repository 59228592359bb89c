"""Workers on a shared log: assignment, takeover and fencing of shards."""

import asyncio
from typing import NoReturn

import pytest

from engine.log import port
from engine.proof import verification
from engine.reconcilers import replay, worker
from events import clusters, keys, topics
from tests.background import background
from tests.builders.inputs import capacity, deployment, joined, key, policy, tainted
from tests.builders.manifests import on
from tests.reconcilers.teams import EVEN, ODD, Workers

NAMES = [f"web{index}" for index in range(40)]


async def begun() -> Workers:
    team = Workers()
    first, second = team.workers
    first.assign(EVEN)
    second.assign(ODD)
    await team.story.write(joined("member1"), joined("member2"), policy("p", on("member1", "member2")))
    await team.story.write(*(deployment(name, 2) for name in NAMES))
    await team.work()
    return team


def owns(owner: worker.Worker) -> list[int]:
    return [fold.state.shard for fold in owner.folds]


async def test_workers_decide_their_own_shards_and_together_all() -> None:
    team = await begun()

    assert [owns(member) for member in team.workers] == [list(EVEN), list(ODD)]
    assert {name: len(story) for name, story in (await team.decided()).items()} == {
        key(name): 1 for name in NAMES
    }
    assert (await verification.verify(team.story.log)).is_clean


async def test_third_worker_gets_its_share_and_the_others_keep_their_state() -> None:
    team = await begun()
    kept = [fold for fold in team.workers[0].folds if fold.state.shard not in {0, 2}]
    team.workers.append(team.join())

    team.workers[0].assign(EVEN[2:])
    team.workers[2].assign((0, 2))
    await team.story.write(tainted("member1", "NoExecute"))
    await team.work()

    assert team.workers[0].folds == kept
    assert owns(team.workers[2]) == [0, 2]
    assert team.placed() == {key(name): {"member2": 2} for name in NAMES}
    assert (await verification.verify(team.story.log)).is_clean


async def test_remaining_worker_takes_over_all_shards() -> None:
    team = await begun()
    del team.workers[1]

    team.workers[0].assign(range(topics.SHARDS))
    await team.story.write(tainted("member1", "NoExecute"))
    await team.work()

    assert owns(team.workers[0]) == list(range(topics.SHARDS))
    assert team.placed() == {key(name): {"member2": 2} for name in NAMES}
    assert (await verification.verify(team.story.log)).is_clean


async def test_worker_without_shards_is_idle() -> None:
    team = await begun()
    idle = team.join()
    await idle.turn()

    assert owns(idle) == []
    assert not idle.is_behind()
    assert idle.next_timer_ms() is None
    idle.assign([3])
    assert idle.is_behind()


async def test_fenced_shard_is_released_and_the_others_continue() -> None:
    team = await begun()
    loser, winner = team.workers
    winner.assign((*ODD, 0))
    await winner.turn()

    # Both workers still have shard 0 assigned; the first one learns only at its commit that it was fenced.
    await team.story.write(*(deployment(name, 3) for name in NAMES))
    async with background(loser.run()):
        while loser.is_behind():  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0)
    await winner.turn()

    assert owns(loser) == list(EVEN[1:])
    assert owns(winner) == [0, *ODD]
    assert team.placed() == {key(name): {"member1": 3, "member2": 3} for name in NAMES}
    assert (await verification.verify(team.story.log)).is_clean


async def test_fenced_shard_is_taken_over_again_after_a_new_assignment() -> None:
    team = await begun()
    loser, winner = team.workers
    winner.assign((*ODD, 0))
    await winner.turn()
    loser.fence([0])
    await loser.turn()
    assert owns(loser) == list(EVEN[1:])

    winner.assign(ODD)
    loser.assign(EVEN)
    await team.work()

    assert [owns(member) for member in team.workers] == [list(EVEN), list(ODD)]


async def test_shards_of_a_failed_takeover_are_released_when_reassigned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    team = await begun()
    first, right = team.workers[0], team.rights[0]

    async def unread(*_: object) -> NoReturn:
        raise port.LogError("the brokers do not answer")

    first.assign(range(topics.SHARDS))
    with monkeypatch.context() as broken:
        broken.setattr(replay, "rebuild", unread)
        with pytest.raises(port.LogError):
            await first.turn()
    assert set(ODD) <= right.held

    first.assign(EVEN)
    await first.turn()
    assert right.held == set(EVEN)
    assert owns(first) == list(EVEN)


async def test_pause_before_retaking_a_contested_shard_grows() -> None:
    team = await begun()
    loser = team.workers[0]
    pauses_ms: list[int] = []
    for _ in range(6):
        loser.fence([0])
        await loser.turn()
        began_ms = team.story.now_ms
        while 0 not in owns(loser):
            team.story.now_ms += 1_000
            await loser.turn()
        pauses_ms.append(team.story.now_ms - began_ms)

    assert pauses_ms == [5_000, 10_000, 20_000, 40_000, 80_000, 80_000]


async def test_links_wait_for_the_facts_that_their_senders_had_seen() -> None:
    team = await begun()
    ahead, behind = team.workers
    cluster = next(
        name for name in (f"member{index}" for index in range(3, 99)) if keys.shard_of(name) in ODD
    )
    await team.story.write(joined(cluster))
    await team.work()

    # More facts than ``behind`` folds in one turn; ``ahead`` reports that it has no works in the leaving cluster.
    await team.story.write(
        *(capacity("member1") for _ in range(2_500)), clusters.ClusterLeaving(name=cluster)
    )
    while ahead.is_behind():
        await ahead.turn()
    await team.work()

    assert cluster not in behind.facts.members
    assert (await verification.verify(team.story.log)).is_clean
