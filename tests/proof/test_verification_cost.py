"""The cost of a proof: records read for each record of the log, for a short and a long history of one workload."""

from engine.log import memory
from engine.proof import verification
from events.records import StoredRecord
from tests.builders.inputs import deployment
from tests.deciders.story import Story
from tests.proof import logs


class CountingLog(memory.MemoryLog):
    """A log that counts the records that its readers get."""

    def __init__(self) -> None:
        super().__init__()
        self.returned = 0

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        found = await super().read(topic, partition, start, limit)
        self.returned += len(found)
        return found

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        found = await super().read_all(after, limit)
        self.returned += len(found)
        return found


async def test_proof_reads_each_record_equally_often_however_long_the_history() -> None:
    shares: list[float] = []
    for edits in (20, 160):
        log = CountingLog()
        story = Story(log)
        await logs.play(story)
        for index in range(edits):
            await story.submit(deployment("web", 6 + index % 2))
        log.returned = 0
        report = await verification.verify(log)
        assert report.is_clean
        shares.append(log.returned / report.records)
    short, long = shares
    assert long < short * 1.1
