"""Works wait for the step that gave them."""

from collections.abc import Sequence

from engine.log import port
from engine.log.kafka.founding import Founded
from engine.log.memory import MemoryLog
from events import ids, records, topics
from events.records import Record, StoredRecord

SHARD, TERM = 3, 1


def of_step(number: int, topic: str, partition: int = 0) -> Record:
    return records.record(topic, partition, "key", {"ce_id": ids.output_id(SHARD, TERM, number, 0)}, b"{}")


class Growing(MemoryLog):
    """A log that gets a partition more whenever it is read, as it may while a reader waits for the brokers."""

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        found = await super().read(topic, partition, start, limit)
        await self.append([of_step(9, topics.LINKS, len(self.live))])
        return found

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[tuple[str, int], int] = {}

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        stored = await super().append(batch)
        self.live.update(super().ends())
        return stored

    def ends(self) -> port.Ends:
        return self.live


async def test_a_work_is_cut_off_until_its_step_has_come() -> None:
    log = MemoryLog()
    founded = Founded(log)
    await log.append(
        [of_step(1, topics.DECISIONS, SHARD), of_step(1, topics.WORKS), of_step(2, topics.WORKS)]
    )

    assert (await founded.ends(log.ends(), lambda _: 0))[topics.WORKS, 0] == 1

    await log.append([of_step(2, topics.DECISIONS, SHARD)])
    assert (await founded.ends(log.ends(), lambda _: 0))[topics.WORKS, 0] == 2


async def test_ends_that_move_while_it_reads_are_for_the_next_time() -> None:
    log = Growing()
    await log.append([of_step(1, topics.DECISIONS, SHARD), of_step(1, topics.WORKS)])

    found = await Founded(log).ends(log.ends(), lambda _: 0)

    assert found == {(topics.DECISIONS, SHARD): 1, (topics.WORKS, 0): 1}
    assert len(log.ends()) > len(found)
