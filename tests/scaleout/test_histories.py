"""The simulation's histories, told again to a worker on Kafka and to one on a log in memory: they end alike.

The inputs of a simulated world go in as they stand in its log, some at a time, under a clock that is theirs. Offsets
differ, since brokers put marks between records; all that is decided must not.
"""

# aiokafka has annotations, but does not say so to type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from engine.log import memory, port
from engine.log.kafka import following, topics
from engine.log.kafka.address import Address
from engine.reconcilers import verification
from engine.reconcilers.worker import Worker
from events import ids, records
from events import topics as names
from tests.scaleout.logs import owned, verified
from tests.simulation import checks, moves, world

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

SEEDS: Final = range(20)
_MOVES: Final = 25
_TOLD: Final = 12
"""So many inputs go in together, before what follows from them is decided."""

_TURNS_MAX: Final = 200
_STEP_MS: Final = 60_000

_POLL_S: Final = 0.002

Told = list[records.Record]
Level = Callable[[], Awaitable[None]]


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now_ms = world.START_MS

    def __call__(self) -> int:
        return self.now_ms


async def inputs(seed: int) -> list[Told]:
    """What a simulated world was told by people and members, in parts."""
    played = world.World(seed)
    await played.start()
    await moves.play(played, _MOVES)
    found = [
        records.record(each.topic, each.partition, each.key, each.headers, each.value)
        for each in await checks.everything(played.log)
        if each.topic in checks.INPUTS and not each.headers.get("ce_source", "").startswith(ids.SHARD_SOURCE)
    ]
    return [found[start : start + _TOLD] for start in range(0, len(found), _TOLD)]


async def tell(log: port.Log, one: Worker, clock: Clock, history: Sequence[Told], level: Level) -> None:
    """Tells a worker a history; after each part of it time passes, and what follows is decided."""
    await one.recover()
    for part in history:
        await log.append(part)
        for _ in range(_TURNS_MAX):
            await level()
            due_ms = one.next_timer_ms()
            if not one.is_behind() and (due_ms is None or due_ms > clock()):
                break
            await one.turn()
        assert not one.is_behind()
        clock.now_ms += _STEP_MS


@asynccontextmanager
async def leveller(address: Address, log: following.FollowedLog) -> AsyncGenerator[Level]:
    """Waits until all that was appended can be read.

    Brokers show a transaction in one partition before they show it in another; a history that is cut there goes on
    otherwise, and as rightly.
    """
    slots = [(topic, 0) for topic in names.FACT_TOPICS]
    slots += [(topic, shard) for topic in names.OWN_TOPICS for shard in range(names.SHARDS)]
    places = {
        TopicPartition(address.topic(topic), partition): (topic, partition) for topic, partition in slots
    }
    consumer = AIOKafkaConsumer(bootstrap_servers=address.servers, isolation_level="read_uncommitted")
    await consumer.start()

    async def is_shown() -> bool:
        written = await consumer.end_offsets(list(places))
        return await log.look(slots) == {places[place]: end for place, end in written.items()}

    async def level() -> None:
        # Only asking again tells.
        while not await is_shown():  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)
        await log.level()

    try:
        yield level
    finally:
        await consumer.stop()


def ends(one: Worker) -> dict[str, object]:
    """What is decided of each binding and rebalancer, without what depends on offsets."""
    found: dict[str, object] = {}
    for fold in one.folds:
        for key, binding in fold.state.bindings.items():
            found[key] = (
                binding.clusters,
                binding.claim.policy if binding.claim else None,
                binding.generation,
                binding.affinity,
                binding.condition,
                binding.message,
                [task.cluster for task in binding.tasks],
                {cluster: (work.replicas, work.suspended) for cluster, work in binding.works.items()},
            )
        for key, rebalancer in fold.state.rebalancers.items():
            results = {name: (each.result, each.reason) for name, each in rebalancer.observed.items()}
            found[key] = (rebalancer.generation, rebalancer.finished, rebalancer.expired, results)
    return found


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_history_ends_on_kafka_as_it_ends_in_memory(seed: int, kafka: str) -> None:
    history = await inputs(seed)
    here, clock = memory.MemoryLog(), Clock()
    one = Worker(here, clock)
    await tell(here, one, clock, history, here.level)
    assert (await verification.verify(here)).is_clean

    address = Address(servers=kafka, prefix=f"h{secrets.token_hex(4)}.")
    await topics.prepare(address)
    async with owned(address) as (shards, there), leveller(address, there) as level:
        clock = Clock()
        other = Worker(there, clock, owner=shards)
        await tell(there, other, clock, history, level)

        assert ends(other) == ends(one)
        assert ends(one)
    assert await verified(address)
