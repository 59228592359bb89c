"""Batching of concurrent writes: they share an append, and each gets its own result."""

import asyncio
from collections.abc import Sequence

import pytest

from engine.writing.write_api import GROUP_REQUESTS_MAX, GROUPS_MAX, WriteBatching


class BlockedWriter:
    """Returns the squares of numbers and refuses 13; blocks until ``opened`` is set."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.opened = asyncio.Event()
        self.joining = WriteBatching(self.carry_out)

    async def carry_out(self, group: Sequence[int]) -> list[int | Exception]:
        self.groups.append(list(group))
        await self.opened.wait()
        if 404 in group:
            raise LookupError("the log is away")
        return [ValueError("13 is refused") if number == 13 else number * number for number in group]


async def test_write_during_other_appends_joins_the_next_batch() -> None:
    writer = BlockedWriter()
    tasks: list[asyncio.Task[int]] = []
    for number in range(8):
        tasks.append(asyncio.create_task(writer.joining.submit(number)))
        for _ in range(3):
            await asyncio.sleep(0)
    assert writer.groups == [[0], [1]]
    writer.opened.set()
    assert await asyncio.gather(*tasks) == [number * number for number in range(8)]
    assert writer.groups == [[0], [1], [2, 3, 4, 5, 6, 7]]


async def test_concurrent_writes_share_a_batch() -> None:
    writer = BlockedWriter()
    writer.opened.set()
    numbers = range(20, GROUP_REQUESTS_MAX + 30)
    assert await asyncio.gather(*map(writer.joining.submit, numbers)) == [
        number * number for number in numbers
    ]
    assert [len(group) for group in writer.groups] == [GROUP_REQUESTS_MAX, 10]
    assert len(writer.groups) <= GROUPS_MAX


async def test_refusal_fails_one_write_and_an_error_fails_its_batch() -> None:
    writer = BlockedWriter()
    writer.opened.set()
    first, refused, second = await asyncio.gather(
        *map(writer.joining.submit, (1, 13, 2)), return_exceptions=True
    )
    assert (first, second) == (1, 4)
    assert isinstance(refused, ValueError)
    failed = await asyncio.gather(*map(writer.joining.submit, (1, 404)), return_exceptions=True)
    assert [type(error) for error in failed] == [LookupError, LookupError]
    assert await writer.joining.submit(3) == 9, "and the writer continues"


async def test_cancelled_write_does_not_block_others() -> None:
    writer = BlockedWriter()
    cancelled = asyncio.create_task(writer.joining.submit(5))
    kept = asyncio.create_task(writer.joining.submit(6))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    writer.opened.set()
    assert await kept == 36


async def test_write_right_after_the_last_batch_is_carried_out() -> None:
    """The tasks of those batches have ended by then, but their callers have not resumed yet."""
    writer = BlockedWriter()

    async def again(number: int) -> list[int]:
        return [await writer.joining.submit(number), await writer.joining.submit(number + 1)]

    first = asyncio.create_task(again(1))
    for _ in range(3):
        await asyncio.sleep(0)
    second = asyncio.create_task(writer.joining.submit(5))
    for _ in range(3):
        await asyncio.sleep(0)
    assert writer.groups == [[1], [5]]
    writer.opened.set()
    async with asyncio.timeout(10):
        assert await asyncio.gather(first, second) == [[1, 4], 25]
