"""Verification: findings about changed, missing and forged records, and their positions."""

import asyncio
import sqlite3
from contextlib import aclosing
from pathlib import Path

import pytest

from engine.deciders import scheduling
from engine.log import local, port, sqlite_reading
from engine.proof import verification
from events import decisions, ids, keys, links, records, release, shapes, topics, works
from events.records import StoredRecord
from tests.builders.inputs import deployment
from tests.deciders.story import Story
from tests.proof import logs
from tests.proof.logs import WEB, changed_mode


async def without(story: Story, lost: StoredRecord) -> local.MemoryLog:
    """Return a copy of the story's log without one record."""
    log = local.MemoryLog()
    await log.append(
        logs.to_append(record for record in await logs.all_records(story.log) if record is not lost)
    )
    return log


async def test_untouched_log_is_clean(tmp_path: Path) -> None:
    async with logs.opened(tmp_path) as log:
        story = Story(log)
        await logs.play(story)
        report = await verification.verify(log)
        count = await story.steps()
    assert (report.findings, report.differences) == ([], [])
    assert report.records == story.log.last_number()
    assert report.steps == count


class GrowingLog(local.MemoryLog):
    """A log whose last records get numbers only when its reader waits for them, or never, as can be on Kafka."""

    def __init__(self, numbered: int, refusal: str = "") -> None:
        super().__init__()
        self._numbered = numbered
        self._refusal = refusal

    def last_number(self) -> int:
        return min(self._numbered, super().last_number())

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        return await super().read_all(after, min(limit, self.last_number() - after))

    async def wait_current(self) -> None:
        if self._refusal:
            raise port.UnnumberedError(self._refusal)
        self._numbered = super().last_number()


async def test_log_that_grows_during_the_proof_is_clean() -> None:
    story = Story()
    await logs.play(story)
    history = await logs.all_records(story.log)
    steps = [record for record in history if is_event(record, decisions.StepTaken)]
    for count, step in enumerate(steps[-12:], len(steps) - 11):
        log = GrowingLog(step.number)
        await log.append(logs.to_append(history))
        report = await verification.verify(log)
        assert (report.steps, report.findings, report.notes) == (count, [], [])


async def test_step_with_an_output_without_a_number_is_noted_as_unproved() -> None:
    story = Story()
    await logs.play(story)
    history = await logs.all_records(story.log)
    output = await newest(story, works.WorkApplied)
    log = GrowingLog(output.number - 1, refusal="2 records have no numbers")
    await log.append(logs.to_append(history))
    report = await verification.verify(log)
    assert report.is_clean
    (note,) = report.notes
    assert (note.kind, note.message) == ("unproved", "2 records have no numbers")
    shard, _term, step = ids.step_of(output.headers["ce_id"])
    assert note.where.startswith(f"shard {shard} step {step} ")


@pytest.mark.parametrize(
    "topic", [topics.SPECS, topics.CLUSTERS, topics.HEALTH, topics.LINKS, topics.DECISIONS, topics.WORKS]
)
async def test_flipped_bit_is_found_and_located(tmp_path: Path, topic: str) -> None:
    async with logs.opened(tmp_path) as log:
        story = Story(log)
        await logs.play(story)
        flipped = next(record for record in await log.read_all(0, log.last_number()) if record.topic == topic)
    await asyncio.to_thread(flip, tmp_path, flipped)
    async with logs.opened(tmp_path) as log:
        report = await verification.verify(log)
    assert not report.is_clean
    assert any(
        finding.kind == "checksum" and str(flipped.position) in finding.message for finding in report.findings
    )


@pytest.mark.parametrize("topic", [topics.SPECS, topics.CLUSTERS, topics.HEALTH, topics.LINKS])
async def test_damaged_last_input_is_no_finding_about_the_order(tmp_path: Path, topic: str) -> None:
    async with logs.opened(tmp_path) as log:
        story = Story(log)
        await logs.play(story)
        history = await logs.all_records(log)
    damaged = [record for record in history if record.topic == topic][-1]
    await asyncio.to_thread(flip, tmp_path, damaged)
    async with logs.opened(tmp_path) as log:
        report = await verification.verify(log)
    kinds = {finding.kind for finding in report.findings}
    assert {"checksum", "unreadable"} <= kinds <= {"checksum", "unreadable", "missing"}


@pytest.mark.parametrize(
    "topic", [topics.SPECS, topics.CLUSTERS, topics.HEALTH, topics.LINKS, topics.DECISIONS]
)
@pytest.mark.parametrize("offset", [1_000_000_000, 1_000, -1])
async def test_damaged_offset_is_found(tmp_path: Path, topic: str, offset: int) -> None:
    async with logs.opened(tmp_path) as log:
        story = Story(log)
        await logs.play(story)
        history = await logs.all_records(log)
    of_topic = [record for record in history if record.topic == topic]
    damaged = of_topic[len(of_topic) // 2]
    await asyncio.to_thread(_move, tmp_path, damaged.number, offset)
    async with asyncio.timeout(20), aclosing(sqlite_reading.SqliteReader(tmp_path)) as reader:
        report = await verification.verify(reader)
    assert not report.is_clean


async def test_offset_after_those_of_later_records_is_found(tmp_path: Path) -> None:
    async with logs.opened(tmp_path) as log:
        story = Story(log)
        await logs.play(story)
        history = await logs.all_records(log)
    last = max(
        (record for record in history if record.topic == topics.DECISIONS), key=lambda record: record.offset
    )
    own = [record for record in history if (record.topic, record.partition) == (last.topic, last.partition)]
    await asyncio.to_thread(_move, tmp_path, own[-3].number, last.offset + 1)
    async with asyncio.timeout(20), aclosing(sqlite_reading.SqliteReader(tmp_path)) as reader:
        report = await verification.verify(reader)
    assert "offset" in {finding.kind for finding in report.findings}


def _move(directory: Path, number: int, offset: int) -> None:
    connection = sqlite3.connect(directory / "log.sqlite")
    with connection:
        connection.execute("UPDATE records SET offset = ? WHERE number = ?", (offset, number))
    connection.close()


def flip(directory: Path, record: StoredRecord) -> None:
    """Flip the lowest bit of the last byte of a record's value, in the file itself."""
    value = record.value[:-1] + bytes([record.value[-1] ^ 1])
    connection = sqlite3.connect(directory / "log.sqlite")
    with connection:
        connection.execute("UPDATE records SET value = ? WHERE number = ?", (value, record.number))
    connection.close()


@pytest.mark.parametrize("kind", [works.WorkApplied, decisions.ScheduleDecided, links.RescheduleAnswered])
async def test_removed_output_is_found_with_its_step(kind: type[shapes.Event]) -> None:
    story = Story()
    await logs.play(story)
    lost = await newest(story, kind)
    report = await verification.verify(await without(story, lost))
    shard, _term, step = ids.step_of(lost.headers["ce_id"])
    (finding,) = [finding for finding in report.findings if finding.kind == "missing"]
    assert finding.where.startswith(f"shard {shard} step {step} (decisions/{shard}/")
    assert lost.headers["ce_id"] in finding.message


async def test_removed_step_is_found() -> None:
    story = Story()
    await logs.play(story)
    shard = keys.shard_of(WEB)
    steps = [
        record
        for record in await logs.all_records(story.log)
        if record.topic == topics.DECISIONS and is_step(record, shard)
    ]
    report = await verification.verify(await without(story, steps[-2]))
    (finding,) = [finding for finding in report.findings if finding.kind == "chain"]
    assert f"of shard {shard}: the chain is broken" in finding.message


async def test_removed_input_is_found() -> None:
    story = Story()
    await logs.play(story)
    lost = next(record for record in await logs.all_records(story.log) if record.topic == topics.CLUSTERS)
    report = await verification.verify(await without(story, lost))
    assert not report.is_clean


async def test_forged_output_is_noted() -> None:
    story = Story()
    await logs.play(story)
    real = await newest(story, works.WorkApplied)
    shard, term, step = ids.step_of(real.headers["ce_id"])
    forged_id = ids.output_id(shard, term, step, 99)
    forged = {**real.headers, "ce_id": forged_id}
    await story.log.append([records.record(real.topic, real.partition, real.key, forged, real.value)])
    report = await verification.verify(story.log)
    (note,) = report.notes
    assert (note.kind, note.where) == ("foreign", f"{real.topic}/{real.partition}/{real.offset + 1}")
    assert forged_id in note.message
    assert report.is_clean


async def test_second_different_output_with_the_same_id_is_noted() -> None:
    story = Story()
    await logs.play(story)
    real = await newest(story, works.WorkApplied)
    other = real.value.replace(b"member2", b"member1")
    await story.log.append([records.record(real.topic, real.partition, real.key, real.headers, other)])
    report = await verification.verify(story.log)
    (note,) = report.notes
    assert (note.kind, note.where) == ("foreign", f"{real.topic}/{real.partition}/{real.offset + 1}")
    assert report.is_clean


async def test_accepted_forged_link_is_found() -> None:
    story = Story()
    await logs.play(story)
    real = await newest(story, links.RescheduleAnswered)
    shard, term, step = ids.step_of(real.headers["ce_id"])
    forged = {**real.headers, "ce_id": ids.output_id(shard, term, step, 99)}
    await story.log.append([records.record(real.topic, real.partition, real.key, forged, real.value)])
    await story.settle()
    (finding,) = (await verification.verify(story.log)).findings
    assert (finding.kind, finding.where) == ("added", f"{real.topic}/{real.partition}/{real.offset + 1}")


@pytest.mark.parametrize("topic", sorted(topics.TOPICS))
async def test_record_with_a_shard_source_and_no_id_is_noted(topic: str) -> None:
    story = Story()
    await logs.play(story)
    headers = {"ce_specversion": "1.0", "ce_source": "/reballast/shards/1", "ce_type": "x"}
    await story.log.append([records.record(topic, 0, "key", headers, b"{}")])
    await story.settle()
    report = await verification.verify(story.log)
    assert [note.where.rpartition("/")[0] for note in report.notes] == [f"{topic}/0"]
    assert report.is_clean


async def test_output_before_its_step_is_found() -> None:
    story = Story()
    await logs.play(story)
    moved = await newest(story, works.WorkApplied)
    shard, _term, number = ids.step_of(moved.headers["ce_id"])
    kept = [record for record in await logs.all_records(story.log) if record is not moved]
    index = next(i for i, record in enumerate(kept) if is_step(record, shard) and _number(record) == number)
    log = local.MemoryLog()
    await log.append(logs.to_append([*kept[:index], moved, *kept[index:]]))
    (finding,) = [finding for finding in (await verification.verify(log)).findings if finding.kind == "order"]
    assert finding.message.startswith(f"output {moved.headers['ce_id']} has a smaller number than its step")


async def test_step_before_its_inputs_is_found() -> None:
    story = Story()
    await logs.play(story)
    shard = keys.shard_of(WEB)
    all_ = await logs.all_records(story.log)
    moved = [record for record in all_ if (record.topic, record.partition) == (topics.SPECS, shard)][-1]
    log = local.MemoryLog()
    await log.append(logs.to_append([*(record for record in all_ if record is not moved), moved]))
    findings = [finding for finding in (await verification.verify(log)).findings if finding.kind == "order"]
    assert {finding.where.rpartition("/")[0] for finding in findings} == {f"decisions/{shard}"}
    assert all("the last input of specs" in finding.message for finding in findings)


def _number(record: StoredRecord) -> int:
    return ids.step_of(record.headers["ce_id"])[2]


async def test_changed_rule_is_found_at_its_first_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    await logs.play(story)
    first = next(
        record for record in await logs.all_records(story.log) if is_event(record, decisions.ScheduleDecided)
    )
    shard, _term, step = ids.step_of(first.headers["ce_id"])

    monkeypatch.setattr(scheduling, "_mode", changed_mode)
    report = await verification.verify(story.log)
    assert {finding.kind for finding in report.findings} == {"recomputed"}
    assert any(finding.where.startswith(f"shard {shard} step {step} ") for finding in report.findings)
    assert not report.differences


async def test_other_release_with_equal_decisions_reports_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story()
    await logs.play(story)
    monkeypatch.setattr(release, "RELEASE", "9.9.9")
    report = await verification.verify(story.log)
    assert report.is_clean
    assert report.differences == []


async def test_steps_after_those_of_another_release_are_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    with monkeypatch.context() as former:
        former.setattr(release, "RELEASE", "9.9.9")
        await logs.play(story)
    await story.restart()
    await story.submit(deployment("web", 8))
    report = await verification.verify(story.log)
    assert (report.findings, report.differences) == ([], [])
    assert report.steps == await story.steps()


async def test_other_release_with_another_rule_reports_a_difference_and_no_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story()
    await logs.play(story)
    monkeypatch.setattr(release, "RELEASE", "9.9.9")
    monkeypatch.setattr(scheduling, "_mode", changed_mode)
    report = await verification.verify(story.log)
    assert report.is_clean
    assert {difference.kind for difference in report.differences} == {"recomputed"}


async def test_steps_after_a_difference_are_noted_as_unproved_and_can_be_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story()
    await logs.play(story)
    with monkeypatch.context() as former:
        former.setattr(release, "RELEASE", "9.9.9")
        former.setattr(scheduling, "_mode", changed_mode)
        await story.restart()
        await story.submit(deployment("web", 7))
    await story.restart()
    await story.submit(deployment("web", 8))

    report = await verification.verify(story.log)
    (difference,), (note,) = report.differences, report.notes
    assert (note.kind, note.where) == ("unproved", difference.where)
    _, _, number = note.message.partition("--from ")
    rest = await verification.verify(story.log, verification.Scope(first=int(number.split("`")[0])))
    assert (rest.findings, rest.differences, rest.notes) == ([], [], [])
    assert rest.steps > 0


async def newest(story: Story, kind: type[shapes.Event]) -> StoredRecord:
    return [record for record in await logs.all_records(story.log) if is_event(record, kind)][-1]


def is_event(record: StoredRecord, kind: type[shapes.Event]) -> bool:
    return record.headers["ce_type"] == kind.event_type.type


def is_step(record: StoredRecord, shard: int) -> bool:
    return record.partition == shard and is_event(record, decisions.StepTaken)
