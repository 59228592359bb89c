"""Exactly-once effects by two mechanisms, each tested without the other.

Transactions alone: a stale owner commits no step, even if every fold would accept it. The fold alone: a step that a
rival writes without ownership takes effect only if it is valid, and then the owner detects that it lost the shard.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

# pyright: reportMissingTypeStubs=false
from aiokafka.errors import InvalidProducerEpoch, KafkaConnectionError, KafkaError, ProducerFenced

from engine.log import local, port
from engine.log.kafka import appends, clients, partition_followers, shard_ownership
from engine.log.kafka.address import Address
from engine.process.replica import clock_ms
from engine.reconcilers import replay
from engine.reconcilers.worker import Worker
from events import codec, decisions, keys
from events import topics as names
from events.records import Record
from tests.brokers.processes import LocalBrokers
from tests.builders import inputs, log_records
from tests.builders.log_records import record_of_bytes
from tests.scaleout import checker, history
from tests.scaleout.logs import followed, owned, prepared, verified

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

KEY: Final = keys.binding_key("Deployment", "default", "foo")
SHARD: Final = keys.shard_of(KEY)
LOOK_S: Final = 1.2
"""An owner looks for what others wrote once a second."""
LOST_S: Final = 120.0
HIDDEN_S: Final = 1.5
"""Longer than until the owner commits what its predecessor left open."""

UNVERIFIED: Final = {"transaction.partition.verification.enable": "false"}
"""Properties of a broker that accepts records of a transaction which it does not know."""

INPUTS: Final = [
    *((topic, 0) for topic in names.FACT_TOPICS),
    *((topic, SHARD) for topic in names.OWN_TOPICS),
]


POLICY: Final = inputs.policy("all")


@pytest.fixture
async def address(kafka: str) -> Address:
    return await prepared(kafka)


@asynccontextmanager
async def owner(
    address: Address,
) -> AsyncGenerator[tuple[Worker, shard_ownership.Shards, partition_followers.FollowedLog]]:
    """A worker that owns the shard's steps until another one takes the ownership."""
    async with owned(address) as (shards, log):
        yield Worker(log, clock_ms, [SHARD], owner=shards), shards, log


@asynccontextmanager
async def worker_without_ownership(
    address: Address,
) -> AsyncGenerator[tuple[Worker, partition_followers.FollowedLog]]:
    """A worker that writes the same shard's steps without ownership: no transactional id, no check for other owners."""
    async with followed(address) as log:
        await log.follow([*INPUTS, (names.DECISIONS, SHARD)])
        yield Worker(log, clock_ms, [SHARD], owner=local.SoleOwner(log)), log


async def turn_until_lost(worker: Worker) -> None:
    """Run turns until the worker raises; it checks for foreign steps once a second."""
    async with asyncio.timeout(LOST_S):
        while True:
            await worker.turn()
            await asyncio.sleep(LOOK_S / 10)


async def until_read(log: partition_followers.FollowedLog, number: int) -> None:
    """Wait until this step is visible: a transaction is committed shortly before its records are visible."""
    async with asyncio.timeout(LOST_S):
        while True:
            await log.wait_current()
            decoded = [codec.decode(record) for record in await log.read(names.DECISIONS, SHARD, 0, 1_000)]
            steps = [event.data for event in decoded if isinstance(event, codec.Decoded)]
            if any(isinstance(step, decisions.StepTaken) and step.number == number for step in steps):
                return


async def next_step(address: Address) -> list[Record]:
    """Return the next valid step of the shard."""
    async with followed(address) as log:
        await log.follow([*INPUTS, (names.DECISIONS, SHARD)])
        fold, facts = (await replay.rebuild(log, [SHARD])).shards[SHARD]
    return fold.decide(facts, clock_ms(), 0, term=fold.state.term).records


async def proved(address: Address) -> tuple[history.History, Sequence[str]]:
    """Return the log as a consumer reads it, and the checker's findings; ``log verify`` must find nothing."""
    assert await verified(address)
    log_history = await asyncio.to_thread(history.read, address.servers, address.prefix.removesuffix("."))
    return log_history, checker.names(checker.check(log_history))


def steps(log_history: history.History) -> list[tuple[int, int]]:
    """Return number and term of each visible step."""
    taken = [entry.data for entry in log_history.of("decisions") if entry.kind == "step-taken"]
    return [(step["number"], step["term"]) for step in taken]


async def test_transactions_alone_keep_a_stale_owner_from_committing(address: Address) -> None:
    async with owner(address) as (worker, shards, log), owner(address) as (_, others, _):
        await worker.recover()
        step = await next_step(address)
        # The other owner has written nothing yet: the step would be valid if it were visible.
        await others.own([SHARD])

        with pytest.raises(port.OwnershipLostError) as lost:
            await shards.commit([(SHARD, step)])

        assert lost.value.shards == (SHARD,)
        assert shards.fences == 1
        assert await log.read(names.WORKS, SHARD, 0, 10) == []
    log_history, _ = await proved(address)
    assert steps(log_history) == [(1, 1)]


async def test_transactions_alone_hide_what_a_stale_owner_already_sent(address: Address) -> None:
    async with owner(address) as (worker, _, _), owner(address) as (other, _, _):
        await worker.recover()
        step = await next_step(address)
        stale = clients.producer(address, address.topic(f"shard-{SHARD}"))
        await stale.start()
        await stale.begin_transaction()
        sent = await appends.send(stale, address, step)

        await other.recover()
        with pytest.raises(ProducerFenced):
            await stale.commit_transaction()

        await clients.stop(stale)
    log_history, wrong = await proved(address)
    # Its bytes are in the partition, followed by those of the next owner.
    assert [entry.offset > sent[0] for entry in log_history.of("decisions")] == [False, True]
    assert steps(log_history) == [(1, 1), (2, 2)]
    assert wrong == []


async def test_takeover_waits_for_steps_that_an_open_transaction_hides(address: Address) -> None:
    slot = (names.DECISIONS, SHARD)
    async with owner(address) as (worker, _, log), owner(address) as (other, _, other_log):
        await worker.recover()
        foreign = await clients.start(clients.producer(address, address.topic("foreign")))
        try:
            await foreign.begin_transaction()
            await appends.send(foreign, address, [record_of_bytes(names.DECISIONS, {}, b"{", KEY)])
            foreign_end = (await other_log.written([slot]))[slot]
            await log.append(
                [log_records.record(POLICY), log_records.record(inputs.deployment("foo"), key=KEY)]
            )
            await log.wait_current()
            turn = asyncio.create_task(worker.turn())
            async with asyncio.timeout(LOST_S):
                while (await other_log.written([slot]))[slot] == foreign_end:  # noqa: ASYNC110  # brokers do not signal it
                    await asyncio.sleep(LOOK_S / 10)
            # By then the step is committed, and the owner reads what the other producer wrote before it.
            await asyncio.sleep(HIDDEN_S)
            assert not turn.done()

            recovering = asyncio.create_task(other.recover())
            await asyncio.sleep(HIDDEN_S)
            assert not recovering.done()

            await foreign.abort_transaction()
            await recovering
            await turn
        finally:
            await clients.stop(foreign)
    log_history, wrong = await proved(address)
    assert steps(log_history) == [(1, 1), (2, 1), (3, 2)]
    assert wrong == []


async def test_committed_step_that_a_broker_left_open_counts_after_the_takeover() -> None:
    # As a broker does that shuts down: the transaction is over, but its end is missing in the partitions.
    with LocalBrokers(1, properties=UNVERIFIED) as brokers:
        address = await prepared(brokers.servers)
        async with owner(address) as (worker, _, log), owner(address) as (other, _, other_log):
            await worker.recover()
            await log.append(
                [log_records.record(POLICY), log_records.record(inputs.deployment("foo"), key=KEY)]
            )
            await log.wait_current()
            await leave_open(address, await next_step(address))

            slots = [(names.DECISIONS, SHARD), (names.REJECTIONS, 0)]
            assert (await other_log.query_ends(slots[0]))[slots[0]] < (await other_log.written(slots))[
                slots[0]
            ]
            await other.recover()
            assert await other_log.query_ends(*slots) == await other_log.written(slots)
            await other.turn()
        log_history, wrong = await proved(address)
    assert steps(log_history) == [(1, 1), (2, 1), (3, 2), (4, 2)]
    assert wrong == []


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (None, None),
        (KafkaConnectionError("the broker shuts down"), port.LogError),
        (ProducerFenced("another owner"), port.OwnershipLostError),
    ],
)
async def test_output_that_a_broker_left_open_is_ended_by_its_owner(
    error: KafkaError | None, raised: type[port.LogError] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalBrokers(1, properties=UNVERIFIED) as brokers:
        address = await prepared(brokers.servers)
        async with owner(address) as (worker, shards, log):
            await worker.recover()
            slot = (names.REJECTIONS, 0)
            producer = await leave_own_open(address, shards, slot)
            assert (await log.query_ends(slot))[slot] < (await log.written([slot]))[slot]
            async with asyncio.timeout(20):
                if error is not None and raised is not None:
                    with monkeypatch.context() as patches:
                        patches.setattr(producer, "commit_transaction", failing(error))
                        with pytest.raises(raised):
                            await turn_until_lost(worker)
                while await log.query_ends(slot) != await log.written([slot]):
                    await worker.turn()
                    await asyncio.sleep(0.2)
            await log.append([log_records.record(inputs.deployment("foo"), key=KEY)])
            await log.wait_current()
            await worker.turn()


async def test_idle_owner_ends_a_step_that_a_broker_left_open(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot = (names.DECISIONS, SHARD)
    async with owner(address) as (worker, shards, log):
        await worker.recover()
        await log.append([log_records.record(POLICY), log_records.record(inputs.deployment("foo"), key=KEY)])
        await log.wait_current()
        producer = shards._owned[SHARD].producer  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        with monkeypatch.context() as patches:
            patches.setattr(producer, "commit_transaction", committing_for_the_client_only(producer))
            assert (await worker.turn()).steps == 1
        assert (await log.query_ends(slot))[slot] < (await log.written([slot]))[slot]

        running = asyncio.create_task(worker.run())
        try:
            async with asyncio.timeout(20):
                while await log.query_ends(slot) != await log.written([slot]):  # noqa: ASYNC110  # brokers do not signal it
                    await asyncio.sleep(0.2)
        finally:
            running.cancel()
        assert shards.fences == 0
    log_history, wrong = await proved(address)
    assert steps(log_history) == [(1, 1), (2, 1)]
    assert wrong == []


def committing_for_the_client_only(producer: clients.Producer) -> Callable[[], Awaitable[None]]:
    manager: Any = producer._txn_manager  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    async def commit() -> None:
        manager.committing_transaction()
        manager.complete_transaction()

    return commit


async def leave_own_open(
    address: Address, shards: shard_ownership.Shards, slot: tuple[str, int]
) -> clients.Producer:
    """Write a record in a transaction that the owner takes for committed, but that has no end in the partition."""
    producer = shards._owned[SHARD].producer  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    manager: Any = producer._txn_manager  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    await producer.begin_transaction()
    manager._txn_partitions.add(clients.partition(address, slot))  # noqa: SLF001
    await appends.send(producer, address, [record_of_bytes(slot[0], {}, b"{", KEY)])
    await committing_for_the_client_only(producer)()
    return producer


def failing(error: KafkaError) -> Callable[[], Awaitable[None]]:
    async def fail() -> None:
        raise error

    return fail


async def leave_open(address: Address, step: list[Record]) -> None:
    """Write a step in a transaction of which the brokers know nothing; it never ends."""
    producer = await clients.start(clients.producer(address, address.topic(f"shard-{SHARD}")))
    try:
        await producer.begin_transaction()
        rejected = record_of_bytes(names.REJECTIONS, {}, b"{", "")
        manager: Any = producer._txn_manager  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        for record in (*step, rejected):
            manager._txn_partitions.add(clients.partition(address, (record.topic, record.partition)))  # noqa: SLF001
        await appends.send(producer, address, [*step, rejected])
    finally:
        await clients.stop(producer)


async def test_owner_fenced_between_two_batches_gets_only_the_fencing_error(
    address: Address,
) -> None:
    batch = [
        log_records.record(inputs.deployment("foo"), key=KEY),
        log_records.record(POLICY),
        log_records.record(inputs.deployment("foo"), key=KEY),
    ]
    transaction = address.topic("fenced-in-the-midst")
    # The metadata request for the second topic gives the brokers time to refuse the first batch.
    for _ in range(10):
        stale, other = clients.producer(address, transaction), clients.producer(address, transaction)
        await stale.start()
        await other.start()
        try:
            with pytest.raises((ProducerFenced, InvalidProducerEpoch)):
                await appends.commit(stale, address, batch)
        finally:
            await clients.stop(stale)
            await clients.stop(other)


async def test_fold_alone_accepts_the_first_rival_and_the_owner_notices(address: Address) -> None:
    async with (
        owner(address) as (worker, shards, log),
        worker_without_ownership(address) as (other, rival_log),
    ):
        await worker.recover()
        await log.append([log_records.record(POLICY), log_records.record(inputs.deployment("foo"), key=KEY)])
        await log.wait_current()
        await worker.turn()

        await until_read(rival_log, 2)
        await other.recover()
        with pytest.raises(port.OwnershipLostError) as lost:
            await turn_until_lost(worker)

        assert lost.value.shards == (SHARD,)
        assert shards.fences == 1
        # The owner takes the shard back with the next term, and continues.
        await worker.turn()
    log_history, wrong = await proved(address)
    assert [term for _, term in steps(log_history)] == [1, 1, 2, 3]
    assert [number for number, _ in steps(log_history)] == [1, 2, 3, 4]
    assert wrong == []


async def test_fold_alone_ignores_a_late_rival(address: Address) -> None:
    async with (
        owner(address) as (worker, shards, log),
        worker_without_ownership(address) as (other, rival_log),
    ):
        await other.recover()
        await worker.recover()
        await log.append([log_records.record(POLICY), log_records.record(inputs.deployment("foo"), key=KEY)])
        await log.wait_current()
        await worker.turn()

        # The rival does not check for foreign steps, and decides the same template again.
        await rival_log.wait_current()
        await other.turn()
        await asyncio.sleep(LOOK_S)
        await log.append([log_records.record(inputs.deployment("foo", 5), key=KEY)])
        await log.wait_current()
        await worker.turn()

        assert shards.fences == 0
    log_history, wrong = await proved(address)
    assert steps(log_history) == [(1, 1), (2, 2), (3, 2), (2, 1), (4, 2)]
    assert wrong == [checker.STALE]
