"""Parts of a proof: some shards, a range of numbers, or what came after a snapshot; together they are the whole."""

import asyncio
from pathlib import Path

import pytest

from engine.deciders import scheduling
from engine.process import log_locations, proofs
from engine.proof import verification
from engine.proof.verification import Scope
from engine.reconcilers import snapshot_storage, snapshots, worker
from events import topics
from tests.builders.inputs import deployment
from tests.deciders.story import Story
from tests.proof import logs
from tests.proof.logs import changed_mode


async def test_separately_proved_shards_give_the_report_of_the_whole_log() -> None:
    log = await logs.played()
    whole = await verification.verify(log)
    halves = [tuple(range(start, topics.SHARDS, 2)) for start in (0, 1)]
    parts = [await verification.verify(log, Scope(shards=half)) for half in halves]
    assert verification.merged(parts) == whole


def test_reports_with_many_notes_are_merged_in_linear_time() -> None:
    notes = [verification.Finding("foreign", f"works/1/{offset}", "no effect") for offset in range(40_000)]
    report = verification.Report(notes=notes)
    assert verification.merged([report, report]).notes == notes


async def test_steps_outside_the_range_are_replayed_and_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    log = await logs.played()
    whole = await verification.verify(log)
    middle = log.last_number() // 2
    early = await verification.verify(log, Scope(last=middle))
    late = await verification.verify(log, Scope(first=middle + 1))
    assert early.is_clean
    assert late.is_clean
    assert 0 < early.steps < whole.steps
    assert early.steps + late.steps == whole.steps
    # With a changed rule, only the part that has the steps that it changes is refuted.
    monkeypatch.setattr(scheduling, "_mode", changed_mode)
    refuted = {finding.where for finding in (await verification.verify(log)).findings}
    assert refuted
    refuted_alone: set[str] = set()
    for number in range(1, log.last_number() + 1):
        report = await verification.verify(log, Scope(first=number, last=number))
        refuted_alone |= {finding.where for finding in report.findings}
    assert refuted <= refuted_alone


async def test_since_a_snapshot_only_later_steps_are_computed(tmp_path: Path) -> None:
    async with logs.opened(tmp_path) as log:
        story = Story(log)
        await logs.play(story)
        store = snapshot_storage.SnapshotFiles(tmp_path)
        restarted = worker.Worker(log, story.clock, storage=snapshot_storage.SingleSnapshotStorage(store))
        await restarted.recover()
        await restarted.store_snapshot()
        await log.append([story.record(deployment("late", 3))])
        while restarted.is_behind():
            await restarted.turn()
        snapshot = await snapshots.newest(log, store, range(topics.SHARDS))
        assert snapshot is not None
        whole = await verification.verify(log)
        report = await verification.verify(log, snapshot=snapshot)
        assert report.findings == report.notes == whole.findings == []
        assert 0 < report.steps < whole.steps
        assert report.records < whole.records


@pytest.mark.parametrize("processes", [1, 3])
async def test_processes_prove_a_log_that_is_open(tmp_path: Path, processes: int) -> None:
    async with logs.opened(tmp_path) as log:
        await logs.play(Story(log))
        whole = await verification.verify(log)
        shown: list[proofs.Progress] = []
        location = await asyncio.to_thread(log_locations.parse, str(tmp_path))
        report = await asyncio.to_thread(proofs.verify, location, processes=processes, show=shown.append)
        assert report == whole
        assert shown[-1].until == log.last_number()


def test_file_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    asyncio.run(_record(tmp_path))
    copy = tmp_path / "archive" / "of-last-year.sqlite"
    copy.parent.mkdir()
    copy.write_bytes((tmp_path / "log.sqlite").read_bytes())
    copy.chmod(0o400)
    copy.parent.chmod(0o500)
    try:
        copied = proofs.verify(log_locations.parse(str(copy)), processes=1)
    finally:
        copy.parent.chmod(0o700)
    assert copied == proofs.verify(log_locations.parse(str(tmp_path)), processes=2)
    assert copied.steps > 0
    assert copied.is_clean


async def _record(directory: Path) -> None:
    async with logs.opened(directory) as log:
        await logs.play(Story(log))
