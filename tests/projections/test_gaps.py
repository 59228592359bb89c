"""Numbers may leave some out, as on Kafka: what is asked for at a number is what stood up to it, and nothing later."""

import asyncio
from collections.abc import Sequence

import pytest

from engine.log.memory import MemoryLog
from events import forms, records
from events.records import Record, StoredRecord
from projections.moments import Moments
from projections.port import Found
from projections.runner import Projector
from projections.store import Store
from tests.projections.stories import Story

STEP = 3
Dump = dict[str, list[Found]]


class GappedLog(MemoryLog):
    """Only every third number is a record's."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[StoredRecord] = []

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        stored = [
            records.stored(
                records.record(each.topic, each.partition, each.key, each.headers, each.value),
                each.offset,
                STEP * each.number,
            )
            for each in await super().append(batch)
        ]
        self.records += stored
        return stored

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        return [each for each in self.records if each.number > after][:limit]

    def last_number(self) -> int:
        return STEP * super().last_number()


async def a_log(happenings: int) -> GappedLog:
    story, log = Story(3), GappedLog()
    await log.append(story.opening())
    for _ in range(happenings):
        await log.append(story.more())
    return log


async def folded(log: GappedLog, *numbers: int, batch: int = 4_096) -> Dump:
    store = await asyncio.to_thread(Store)
    projector = Projector(log, store, forms.check, batch_records_max=batch)
    for number in numbers:
        await projector.fold_to(number)
        assert projector.folded == number
    projector.close()
    found = await asyncio.to_thread(store.dump)
    await asyncio.to_thread(store.close)
    return found


@pytest.mark.parametrize("missing", [0, 1, 2])
@pytest.mark.parametrize("batch", [1, 7, 4_096])
async def test_what_is_folded_ends_with_the_number_that_was_asked_for(missing: int, batch: int) -> None:
    log = await a_log(20)
    half = len(log.records) // 2
    number = log.records[half].number + missing

    found = await folded(log, number, batch=batch)

    ((end, _),) = found["checkpoint"]
    assert end == log.records[half].number
    assert found == await folded(log, *range(1, number + 1, 5), number)


async def test_a_moment_between_two_records_is_that_of_the_first() -> None:
    log = await a_log(20)
    moments = Moments(log, forms.check)
    number = log.records[len(log.records) // 2].number
    async with moments.at(number + 1) as store:
        between = await asyncio.to_thread(store.dump)
    await moments.close()

    assert between == await folded(log, number)
