"""Replay of several shards with shared facts, also if their steps had seen the facts in different orders."""

import itertools

import msgspec
import pytest

from engine.log import local, port
from engine.proof import verification
from engine.reconcilers import replay
from events import topics
from tests.builders.inputs import deployment, joined, policy, tainted
from tests.builders.manifests import on
from tests.reconcilers.teams import EVEN, ODD, Workers

NAMES = [f"web{index}" for index in range(24)]


class LaggingLog(local.MemoryLog):
    """A log whose readers do not see the newest records of some topics yet, as consumers of Kafka may."""

    def __init__(self) -> None:
        super().__init__()
        self.ends_seen: dict[str, int] = {}

    def ends(self) -> port.Ends:
        return {slot: min(end, self.ends_seen.get(slot[0], end)) for slot, end in super().ends().items()}


async def team_with_crossing_views() -> tuple[Workers, LaggingLog]:
    """Return two workers that have often seen the fact topics in opposite orders.

    At some steps the first worker had seen more clusters than the second one, but fewer policies.
    """
    log = LaggingLog()
    team = Workers(log)
    first, second = team.workers
    first.assign(EVEN)
    second.assign(ODD)
    await team.story.write(
        *(joined(f"member{index}") for index in range(4)), policy("p", on("member0", "member1"))
    )
    await team.story.write(*(deployment(name, 2) for name in NAMES))
    await team.work()
    for number in range(3):
        before = log.ends()
        await team.story.write(tainted(f"member{number}", "NoExecute"))
        await team.story.write(policy("p", on("member2" if number % 2 else "member1", "member3")))
        await team.story.write(*(deployment(name, 3 + number) for name in NAMES))
        for owner, topic in zip(team.workers, topics.FACT_TOPICS, strict=True):
            log.ends_seen = {topic: before[topic, 0]}
            await owner.turn()
        log.ends_seen = {}
        if number == 1:
            # Once in between, both workers see all facts.
            await team.work()
    await team.work()
    return team, log


async def test_shards_of_crossing_views_are_rebuilt_in_groups() -> None:
    team, log = await team_with_crossing_views()

    together = await replay.rebuild(log, range(topics.SHARDS))

    assert 1 < len({id(facts) for _, facts in together.shards.values()}) < topics.SHARDS
    for fold in itertools.chain.from_iterable(owner.folds for owner in team.workers):
        rebuilt, _ = together.shards[fold.state.shard]
        assert msgspec.json.encode(rebuilt.state.bindings, order="deterministic") == msgspec.json.encode(
            fold.state.bindings, order="deterministic"
        )
        assert rebuilt.state.digest == fold.state.digest


async def test_log_of_crossing_views_is_proved() -> None:
    _, log = await team_with_crossing_views()
    report = await verification.verify(log)
    assert report.findings == []
    assert report.steps > 2 * topics.SHARDS


async def test_shards_of_one_worker_share_their_facts() -> None:
    team = Workers()
    team.workers[0].assign(range(topics.SHARDS))
    await team.story.write(joined("member1"), policy("p", on("member1")))
    await team.story.write(*(deployment(name, 2) for name in NAMES))
    await team.work()

    together = await replay.rebuild(team.story.log, range(topics.SHARDS))

    assert len({id(facts) for _, facts in together.shards.values()}) == 1


async def test_unreadable_shard_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    _, log = await team_with_crossing_views()
    read = log.read

    async def damaged(topic: str, partition: int, start: int, limit: int) -> object:
        if (topic, partition) == (topics.SPECS, 3):
            raise port.LogCorruptedError("specs/3/0 is not what was appended")
        return await read(topic, partition, start, limit)

    monkeypatch.setattr(log, "read", damaged)
    together = await replay.rebuild(log, range(topics.SHARDS))

    assert list(together.unreadable) == [3]
    assert set(together.shards) == set(range(topics.SHARDS)) - {3}
