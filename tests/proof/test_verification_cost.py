"""The cost of a proof: records read for each record of the log, and records kept, for short and long histories."""

from engine.proof import verification
from engine.proof.record_origins import RecordOrigins
from events import topics
from tests.builders.inputs import deployment, rebalancer, ref
from tests.deciders.story import Story
from tests.proof import logs
from tests.proof.logs import CountingLog


async def test_proof_reads_each_record_once_however_long_the_history() -> None:
    for edits in (20, 160):
        log = CountingLog()
        story = Story(log)
        await logs.play(story)
        for index in range(edits):
            await story.submit(deployment("web", 6 + index % 2))
        log.returned = 0
        report = await verification.verify(log)
        assert report.is_clean
        assert log.returned == report.records


async def test_proof_keeps_nothing_of_outputs_that_were_computed_and_of_rejections() -> None:
    story = Story()
    await logs.play(story)
    for index in range(30):
        await story.submit(
            deployment("web", 6, expects=999), rebalancer(f"r{index}", ref("web"), ref("nobody"))
        )
    history = await logs.all_records(story.log)
    assert sum(record.topic == topics.REJECTIONS for record in history) >= 30
    assert sum(record.topic == topics.LINKS for record in history) >= 30
    origins = RecordOrigins(story.log.last_number())
    for record in history:
        origins.take(record)
        origins.output(record.headers["ce_id"], record.checksum)
    assert origins.entry_count == 0


async def test_proof_keeps_nothing_of_steps_that_came_after_it_began() -> None:
    story = Story()
    await logs.play(story)
    number = story.log.last_number()
    for index in range(30):
        await story.submit(deployment("web", 6 + index % 2))
    origins = RecordOrigins(number)
    for record in await logs.all_records(story.log):
        origins.take(record)
        if record.number <= number:
            origins.output(record.headers["ce_id"], record.checksum)
    assert origins.entry_count == 0
