"""Histories of the simulation, replayed on a worker on Kafka and on one on SQLite: the results are equal.

The inputs of a simulated world are appended in parts under its own clock. Offsets and numbers differ, since
brokers put markers between records; decisions and views must not. Both logs are verified as by ``log
verify``.
"""

# aiokafka has annotations, but no py.typed marker for type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from engine.log import port
from engine.log.kafka import numbered_log, partition_followers
from engine.log.kafka.address import Address
from engine.log.sqlite import SqliteLog
from engine.proof import verification
from engine.reconcilers.worker import Worker
from events import ids, records
from events import topics as names
from events.validation import manifests
from projections import query
from projections.runner import Projector
from projections.store import Store
from tests.builders.documents import document_of
from tests.rounds import ROUNDS
from tests.scaleout.logs import owned, prepared
from tests.simulation import checks, world
from tests.simulation.moves import playing

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

SEEDS: Final = range(5 * ROUNDS)
_MOVES: Final = 25
_TOLD: Final = 12
"""So many inputs go in together, before what follows from them is decided."""

_TURNS_MAX: Final = 200
_STEP_MS: Final = 60_000

_POLL_S: Final = 0.002
_ALL: Final = 1_000
_PLACES: Final = ("resourceVersion", "number", "position", "offset")
_encode: Final = msgspec.json.Encoder(order="sorted", enc_hook=document_of).encode

Appended = list[records.Record]
WaitCurrent = Callable[[], Awaitable[None]]


class Clock:
    """A clock that only the test advances."""

    def __init__(self) -> None:
        self.now_ms = world.START_MS

    def __call__(self) -> int:
        return self.now_ms


async def inputs(seed: int) -> list[Appended]:
    """Return the inputs of a simulated world, by users and members, in parts."""
    played = world.World(seed)
    await played.start()
    await playing.play(played, _MOVES)
    input_records = [
        records.record(record.topic, record.partition, record.key, record.headers, record.value)
        for record in await checks.all_records(played.log)
        if record.topic in checks.INPUTS
        and not record.headers.get("ce_source", "").startswith(ids.SHARD_SOURCE)
    ]
    return [input_records[start : start + _TOLD] for start in range(0, len(input_records), _TOLD)]


async def append_history(
    log: port.Log, worker: Worker, clock: Clock, history: Sequence[Appended], wait_current: WaitCurrent
) -> None:
    """Append a history to a log in parts; after each part time passes and the worker decides."""
    await worker.recover()
    for part in history:
        await log.append(part)
        for _ in range(_TURNS_MAX):
            await wait_current()
            due_ms = worker.next_timer_ms()
            if not worker.is_behind() and (due_ms is None or due_ms > clock()):
                break
            await worker.turn()
        assert not worker.is_behind()
        clock.now_ms += _STEP_MS


@asynccontextmanager
async def visibility_waits(
    address: Address, log: partition_followers.FollowedLog
) -> AsyncGenerator[WaitCurrent]:
    """Yield a function that waits until all appended records are visible.

    Brokers show a transaction in one partition before they show it in another; a history cut there would
    continue differently, and equally correctly.
    """
    slots = [(topic, 0) for topic in names.FACT_TOPICS]
    slots += [(topic, shard) for topic in names.OWN_TOPICS for shard in range(names.SHARDS)]
    partitions = {
        TopicPartition(address.topic(topic), partition): (topic, partition) for topic, partition in slots
    }
    consumer = AIOKafkaConsumer(bootstrap_servers=address.servers, isolation_level="read_uncommitted")
    await consumer.start()

    async def is_shown() -> bool:
        written = await consumer.end_offsets(list(partitions))
        return await log.unfollowed_ends(slots) == {
            partitions[partition]: end for partition, end in written.items()
        }

    async def wait_current() -> None:
        # Visibility can only be polled.
        while not await is_shown():  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S)
        await log.wait_current()

    try:
        yield wait_current
    finally:
        await consumer.stop()


def ends(worker: Worker) -> dict[str, object]:
    """Return the decisions about each binding and rebalancer, without fields that depend on offsets."""
    outcomes: dict[str, object] = {}
    for fold in worker.folds:
        for key, binding in fold.state.bindings.items():
            outcomes[key] = (
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
            results = {
                name: (outcome.result, outcome.reason) for name, outcome in rebalancer.observed.items()
            }
            outcomes[key] = (rebalancer.generation, rebalancer.finished, rebalancer.expired, results)
    return outcomes


LISTINGS: Final = (
    query.list_bindings,
    query.list_objects,
    query.list_rebalancers,
    query.list_clusters,
    query.list_works,
    query.list_rejections,
)


async def shown(log: port.NumberedLog) -> dict[str, list[bytes]]:
    """Return the views of a log, without log positions, and without an order that comes from the log."""
    store = await asyncio.to_thread(Store)
    projector = Projector(log, store, manifests.check)
    await projector.fold_to(log.last_number())
    projector.close()

    def read() -> dict[str, list[bytes]]:
        with store.reading() as rows:
            pages = {
                listing.__name__: msgspec.json.decode(_encode(listing(rows, limit=_ALL)))
                for listing in LISTINGS
            }
        return {
            name: sorted(_encode(without_places(item)) for item in page["items"])
            for name, page in pages.items()
        }

    listed = await asyncio.to_thread(read)
    await asyncio.to_thread(store.close)
    return listed


def without_places(value: object) -> object:
    """Return a document without its log positions."""
    match value:
        case dict():
            return {name: without_places(field) for name, field in value.items() if name not in _PLACES}
        case list():
            return [without_places(element) for element in value]
        case _:
            return value


@pytest.mark.parametrize("seed", SEEDS)
async def test_history_ends_on_kafka_as_on_sqlite(seed: int, kafka: str, tmp_path: Path) -> None:
    history = await inputs(seed)
    sqlite_log, clock = await SqliteLog.open(tmp_path, synchronous="OFF"), Clock()
    try:
        sqlite_worker = Worker(sqlite_log, clock)
        await append_history(sqlite_log, sqlite_worker, clock, history, sqlite_log.wait_current)
        assert (await verification.verify(sqlite_log)).is_clean
        views = await shown(sqlite_log)
    finally:
        await sqlite_log.aclose()

    address = await prepared(kafka)
    async with owned(address) as (shards, kafka_log), visibility_waits(address, kafka_log) as wait_current:
        clock = Clock()
        other = Worker(kafka_log, clock, owner=shards)
        await append_history(kafka_log, other, clock, history, wait_current)

        assert ends(other) == ends(sqlite_worker)
        assert ends(sqlite_worker)
    async with numbered_log.opened(address) as log:
        await log.wait_current()
        assert (await verification.verify(log)).is_clean
        assert await shown(log) == views
        assert views["list_objects"]
