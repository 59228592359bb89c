"""One order of records for all replicas, over takeovers, kills and restarts."""

import asyncio
import resource
import tempfile
import threading
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.log.kafka import extents, numbered_log, sequence
from engine.log.kafka.address import Address
from engine.log.kafka.sequence import Extent, Extents
from events import records, topics
from events.records import Record, StoredRecord
from tests.brokers import clients as plain
from tests.scaleout import logs

WAIT_S = 60


def spec_record(text: str, partition: int = 0, topic: str = topics.SPECS) -> Record:
    return records.record(topic, partition, f"key-{text}", {"ce_id": text}, text.encode())


@pytest.fixture
async def address(kafka: str) -> Address:
    return await logs.prepared(kafka)


# --- valid extents ---


def test_extents_that_do_not_join_have_no_effect() -> None:
    order = sequence.Sequence()
    assert order.take(Extents(1, "a", (Extent("specs", 0, 0, 3), Extent("decisions", 4, 0, 2))))

    for wrong in (
        Extents(1, "b", (Extent("specs", 0, 3, 4),)),  # its number was already assigned
        Extents(7, "b", (Extent("specs", 0, 3, 4),)),  # leaves numbers out
        Extents(6, "b", (Extent("specs", 0, 2, 4),)),  # numbers an offset twice
        Extents(6, "b", (Extent("specs", 0, 4, 5),)),  # leaves an offset out
        Extents(6, "b", (Extent("specs", 0, 3, 3),)),  # is empty
        Extents(6, "b", ()),
        Extents(6, "b", (Extent("specs", 0, 3, 4), Extent("specs", 0, 3, 5))),
    ):
        assert not order.take(wrong)
    assert order.take(Extents(6, "b", (Extent("specs", 0, 3, 4),)))
    assert (order.next, order.by, order.end(("specs", 0))) == (7, "b", 4)


def test_each_offset_has_a_number_and_each_number_an_extent() -> None:
    order = sequence.Sequence()
    order.take(Extents(1, "a", (Extent("specs", 0, 0, 3), Extent("decisions", 4, 0, 2))))
    order.take(Extents(6, "a", (Extent("specs", 0, 3, 5),)))

    assert [order.number(("specs", 0), offset) for offset in range(5)] == [1, 2, 3, 6, 7]
    assert [order.number(("decisions", 4), offset) for offset in range(2)] == [4, 5]
    assert [(extent.slot[0], extent.start, extent.end, extent.first) for extent in order.after(1)] == [
        ("specs", 1, 3, 2),
        ("decisions", 0, 2, 4),
        ("specs", 3, 5, 6),
    ]
    assert list(order.after(7)) == []


# --- replicas ---


@pytest.mark.slow
async def test_all_replicas_return_the_same_order_for_every_writer(address: Address) -> None:
    async with numbered_log.opened(address) as first, numbered_log.opened(address) as second:
        for index in range(20):
            writer, reader = (first, second) if index % 2 else (second, first)
            batch = [spec_record(f"{index}.{part}", part) for part in range(3)]
            stored = await writer.append(batch)
            assert await reader.newest() >= max(record.number for record in stored)
            read = await reader.read(topics.SPECS, 1, stored[1].offset, 1)
            assert [(record.number, record.value) for record in read] == [(stored[1].number, stored[1].value)]

        assert await first.read_all(0, 1_000) == await second.read_all(0, 1_000)
        assert len(await first.read_all(0, 1_000)) == 60


@pytest.mark.slow
async def test_another_replica_takes_over_the_numbering(address: Address) -> None:
    async with AsyncExitStack() as stack:
        second = await stack.enter_async_context(numbered_log.opened(address))
        async with numbered_log.opened(address) as first:
            before = await first.append([spec_record("before")])
            assert await second.newest() == before[0].number

        async with asyncio.timeout(WAIT_S):
            (after,) = await second.append([spec_record("after")])
        assert after.number > before[0].number


@pytest.mark.slow
async def test_restarted_replica_returns_the_same_numbers(address: Address) -> None:
    async with numbered_log.opened(address) as log:
        for index in range(10):
            await log.append([spec_record(f"{index}.{part}", part % 12) for part in range(30)])
        everything = await log.read_all(0, 1_000)

    async with numbered_log.opened(address) as again:
        assert again.last_number() == everything[-1].number
        assert await again.read_all(0, 1_000) == everything
        assert await again.read_all(everything[120].number, 7) == everything[121:128]


@pytest.mark.slow
async def test_read_only_log_follows_the_numbers_of_others(address: Address) -> None:
    async with numbered_log.opened(address) as log, numbered_log.opened(address, extends=False) as reader:
        stored = await log.append([spec_record("a"), spec_record("b", 5)])

        async with asyncio.timeout(WAIT_S):
            await reader.wait(stored[-1].number - 1)
        assert await reader.read_all(0, 10) == stored


@pytest.mark.slow
async def test_unreadable_records_of_the_sequence_stop_no_replica(address: Address) -> None:
    deep = b'{"first":1,"by":"a","extents":[],"more":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    async with numbered_log.opened(address) as log:
        for value in (b'{"first":1,"by":"\xff","extents":[]}', deep, b"\xff", b""):
            await plain.append(address.servers, address.topic(sequence.TOPIC), 0, b"", value, {})
        async with asyncio.timeout(WAIT_S):
            await log.newest()
            (stored,) = await log.append([spec_record("one")])
    async with numbered_log.opened(address) as late:
        assert await late.read_all(0, 10) == [stored]


@pytest.mark.slow
async def test_readers_at_the_same_time_all_catch_up(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbered_log, "_READ", 2)
    async with numbered_log.opened(address) as writer, receiving(address) as log:
        stored = [await writer.append([spec_record(str(index))]) for index in range(8)]
        read = log._followed.read  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

        async def slow(topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
            """Read as slowly as from the brokers; the newest records are in memory."""
            records = await read(topic, partition, start, limit)
            await asyncio.sleep(0.01)
            return records

        monkeypatch.setattr(log._followed, "read", slow)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        async with asyncio.timeout(WAIT_S):
            assert await asyncio.gather(log.newest(), log.newest()) == [stored[-1][0].number] * 2


@asynccontextmanager
async def receiving(address: Address, directory: Path | None = None) -> AsyncGenerator[numbered_log.KafkaLog]:
    """A log that receives records, and applies the sequence only when it is asked for the newest number."""
    log = numbered_log.KafkaLog(address, extends=False, directory=directory)
    try:
        await log.open()
        running = asyncio.create_task(log._followed.run())  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        try:
            yield log
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    finally:
        await log.aclose()


# --- the file of extents ---


def long_sequence(order: sequence.Sequence, count: int) -> None:
    """Take ``count`` extents of several partitions with different lengths."""
    for index in range(count):
        slot = ("specs", index % 5)
        start = order.end(slot)
        assert order.take(Extents(order.next, "a", (Extent(*slot, start, start + 1 + index % 3),)))


def write_extents(order: sequence.Sequence, shelf: extents.ExtentFile) -> None:
    state, rows = order.put(7, b"seven")
    shelf.put(state, rows)
    order.mark_written(len(rows))


@settings(max_examples=40)
@given(
    steps=st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=5),
    kept=st.integers(1, 10),
    is_restarted=st.booleans(),
)
def test_numbers_are_the_same_in_memory_and_in_the_file(
    steps: list[tuple[int, bool]], kept: int, is_restarted: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(sequence, "EXTENTS_KEPT", kept)
        whole, path = sequence.Sequence(), Path(folder, extents.FILE)
        shelf = extents.ExtentFile(path)
        order = sequence.Sequence(shelf)
        for count, is_put in steps:
            long_sequence(whole, count)
            long_sequence(order, count)
            if is_put:
                write_extents(order, shelf)
        if is_restarted:
            write_extents(order, shelf)
            shelf.close()
            shelf = extents.ExtentFile(path)
            order = sequence.Sequence(shelf)

        assert (order.next, order.by, len(order)) == (whole.next, whole.by, len(whole))
        for number in range(whole.next):
            assert list(order.after(number)) == list(whole.after(number))
        for stretch in whole.after(0):
            for offset in range(stretch.start, stretch.end):
                assert order.number(stretch.slot, offset) == stretch.first + offset - stretch.start
        shelf.close()


def test_invalid_extent_file_is_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / extents.FILE
    path.write_bytes(b"something else" * 1_000)
    shelf = extents.ExtentFile(path)
    order = sequence.Sequence(shelf)
    long_sequence(order, 10)
    write_extents(order, shelf)
    shelf.close()

    again = extents.ExtentFile(path)
    assert (again.state.read, again.state.record, again.state.count) == (7, b"seven", 10)
    again.close()


def test_extent_file_with_a_damaged_page_is_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / extents.FILE
    shelf = extents.ExtentFile(path)
    order = sequence.Sequence(shelf)
    long_sequence(order, 10_000)
    write_extents(order, shelf)
    shelf.close()
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(content[:middle] + b"\xff" * 4_096 + content[middle + 4_096 :])

    again = extents.ExtentFile(path)
    assert again.state.count == 0
    again.close()


def test_full_disk_keeps_the_extents_in_memory(tmp_path: Path) -> None:
    shelf = extents.ExtentFile(tmp_path / extents.FILE)
    order = sequence.Sequence(shelf)
    long_sequence(order, 20_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, before[1]))
    try:
        with pytest.raises(extents.UnwritableError, match="can't be written"):
            write_extents(order, shelf)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (shelf.state.count, order.unwritten_count()) == (0, 20_000)

    write_extents(order, shelf)
    assert (shelf.state.count, order.unwritten_count()) == (20_000, 0)
    shelf.close()


def test_missing_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(extents.UnwritableError, match="can't be created"):
        extents.ExtentFile(tmp_path / "missing" / extents.FILE)


@pytest.mark.slow
async def test_replica_continues_from_its_extent_file(address: Address, tmp_path: Path) -> None:
    async with numbered_log.opened(address, directory=tmp_path) as log:
        for index in range(10):
            await log.append([spec_record(f"{index}.{part}", part % 12) for part in range(30)])
        everything = await log.read_all(0, 1_000)
    async with numbered_log.opened(address) as other:
        (since,) = await other.append([spec_record("since")])

    async with numbered_log.opened(address, directory=tmp_path) as again:
        assert await again.newest() == since.number
        assert await again.read_all(0, 1_000) == [*everything, since]
        assert await again.read_all(everything[120].number, 7) == everything[121:128]
        assert again.sequence_counts().extents > len(everything) // 30


@pytest.mark.slow
async def test_extents_are_stored_once_although_their_reader_is_cancelled(
    address: Address, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbered_log, "_EXTENTS_PER_WRITE", 2)
    # Otherwise extents are applied, and written, only after as many more.
    monkeypatch.setattr(numbered_log, "_REFUSED_WITHIN", 0)
    begun, released = threading.Event(), threading.Event()
    put = extents.ExtentFile.put

    def slow(shelf: extents.ExtentFile, state: extents.State, rows: Iterable[extents.Row]) -> None:
        # The writer has a temporary file, without a path.
        if shelf._path is not None:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            begun.set()
            released.wait(10)
        put(shelf, state, rows)

    monkeypatch.setattr(extents.ExtentFile, "put", slow)
    async with numbered_log.opened(address) as writer, receiving(address, tmp_path) as log:
        for index in range(4):
            await writer.append([spec_record(f"before {index}")])
        reader = asyncio.create_task(log.newest())
        assert await asyncio.to_thread(begun.wait, 10)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        released.set()
        stored = [await writer.append([spec_record(f"after {index}")]) for index in range(4)]
        assert await log.newest() == stored[-1][0].number
        count = log.sequence_counts().extents
    shelf = await asyncio.to_thread(extents.ExtentFile, tmp_path / extents.FILE)
    assert (shelf.state.count, shelf.state.next) == (count, stored[-1][0].number + 1)
    await asyncio.to_thread(shelf.close)


@pytest.mark.slow
async def test_extent_file_of_another_log_is_not_used(address: Address, kafka: str, tmp_path: Path) -> None:
    async with numbered_log.opened(address, directory=tmp_path) as log:
        for index in range(5):
            await log.append([spec_record(f"{index}.{part}", part) for part in range(12)])

    other = await logs.prepared(kafka)
    async with numbered_log.opened(other, directory=tmp_path) as log:
        (stored,) = await log.append([spec_record("first")])
        assert await log.read_all(0, 10) == [stored]
