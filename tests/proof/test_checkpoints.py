"""Signed checkpoints reveal a log that was cut, spliced or rewritten with right digests, and name the first step."""

import asyncio
import contextlib
from pathlib import Path

import pytest
import structlog

from engine.log import local, port
from engine.process import checkpoint_signing
from engine.proof import checkpoints, verification
from engine.proof.checkpoints import Checkpoint
from events import codec, decisions
from events.records import StoredRecord
from tests.proof import logs

_PRIVATE, _PUBLIC = checkpoints.new_keys()
PRIVATE = checkpoints.private_key(_PRIVATE)
PUBLIC = checkpoints.public_key(_PUBLIC)


async def computed(log: port.NumberedLog, last: Checkpoint | None = None) -> list[Checkpoint]:
    return [checkpoint async for checkpoint in checkpoints.compute(log, 1_000, last)]


def steps_of(history: list[StoredRecord]) -> dict[tuple[int, int], StoredRecord]:
    """The steps of a history by shard and number."""
    steps: dict[tuple[int, int], StoredRecord] = {}
    for record in history:
        match codec.decode(record):
            case codec.Decoded(data=decisions.StepTaken() as step):
                steps[step.shard, step.number] = record
            case _:
                pass
    return steps


def first_differing(original: list[StoredRecord], others: list[StoredRecord]) -> dict[int, int]:
    """The number of the first step of each shard that is not in both histories, up to the length of the first one."""
    steps, other_steps = steps_of(original), steps_of(others[: len(original)])
    numbers: dict[int, int] = {}
    for shard, number in sorted(steps | other_steps):
        step, other = steps.get((shard, number)), other_steps.get((shard, number))
        if step is None or other is None or step.value != other.value:
            numbers.setdefault(shard, number)
    return numbers


def named(findings: list[verification.Finding]) -> dict[int, int]:
    """The shard and the step that each finding names."""
    numbers: dict[int, int] = {}
    for finding in findings:
        assert finding.kind == "checkpoint"
        match finding.where.split():
            case "shard", shard, "step", number:
                numbers[int(shard)] = int(number)
            case _:
                pass
    return numbers


async def test_log_contains_its_own_checkpoints() -> None:
    log = await logs.played()
    half = await logs.copied((await logs.all_records(log))[:40])
    first = await computed(half)
    series = [*first, *await computed(log, first[-1])]
    assert [checkpoint.number for checkpoint in series] == [40, log.last_number()]
    assert await checkpoints.differing(log, series) == []
    assert await checkpoints.differing(log, series[1:]) == []
    assert await computed(log, series[-1]) == []


async def test_log_agrees_with_no_checkpoints() -> None:
    assert await checkpoints.differing(local.MemoryLog(), []) == []


async def test_checkpoints_of_one_history_are_equal_however_often_they_are_made() -> None:
    log = await logs.played()
    once = (await computed(log))[-1]
    last: Checkpoint | None = None
    history = await logs.all_records(log)
    for end in range(10, len(history) + 10, 10):
        (last,) = await computed(await logs.copied(history[:end]), last)
    assert last is not None
    assert last.records == once.records
    assert [(head.step, head.digest) for head in last.heads] == [
        (head.step, head.digest) for head in once.heads
    ]


@pytest.mark.parametrize("lost", [1, 3, 8])
async def test_log_without_its_last_steps_is_found_with_the_first_missing_one(lost: int) -> None:
    log = await logs.played()
    history = await logs.all_records(log)
    end = sorted(step.number for step in steps_of(history).values())[-lost] - 1
    cut = await logs.copied(history[:end])
    assert (await verification.verify(cut)).is_clean
    findings = await checkpoints.differing(cut, await computed(log))
    assert named(findings) == first_differing(history, history[:end])
    assert any(f"ends at number {end}" in finding.message for finding in findings)


async def test_rewritten_history_with_right_digests_is_detected_with_its_first_step() -> None:
    log, anew = await logs.played(replicas=6), await logs.played(replicas=9)
    assert (await verification.verify(anew)).is_clean
    findings = await checkpoints.differing(anew, await computed(log))
    expected = first_differing(await logs.all_records(log), await logs.all_records(anew))
    assert expected
    assert named(findings) == expected


async def test_first_of_several_checkpoints_that_differs_names_the_step() -> None:
    log, anew = await logs.played(replicas=6), await logs.played(replicas=9)
    history = await logs.all_records(log)
    series: list[Checkpoint] = []
    for end in (20, 40, 60, len(history)):
        series += await computed(await logs.copied(history[:end]), series[-1] if series else None)
    findings = await checkpoints.differing(anew, series)
    expected = first_differing(history, await logs.all_records(anew))
    named_steps = named(findings)
    assert named_steps
    assert all(expected[shard] == number for shard, number in named_steps.items())


async def test_spliced_logs_are_found() -> None:
    log, other = await logs.played(replicas=6), await logs.played(replicas=9)
    records, others = await logs.all_records(log), await logs.all_records(other)
    spliced = await logs.copied([*records[:30], *others[30:]])
    assert await checkpoints.differing(spliced, await computed(log))


async def test_input_that_no_step_took_is_covered_too() -> None:
    log = await logs.played()
    history = await logs.all_records(log)
    (waiting,) = logs.to_append([history[0]])
    await log.append([waiting])
    series = await computed(log)
    without = await logs.copied(history)
    await without.append(logs.to_append([history[1]]))
    (finding,) = await checkpoints.differing(without, series)
    assert finding.where == f"number {log.last_number()}"
    assert "although no step differs" in finding.message


async def test_checkpoint_without_the_ones_before_it_covers_all_records() -> None:
    log = await logs.played()
    history = await logs.all_records(log)
    waiting, other = logs.to_append(history[:2])
    await log.append([waiting])
    first = await computed(log)
    await log.append([waiting])
    (last,) = await computed(log, first[-1])
    changed = await logs.copied(history)
    await changed.append([other, waiting])
    (finding,) = await checkpoints.differing(changed, [last])
    assert finding.where == f"number {log.last_number()}"
    assert "although no step differs" in finding.message


@pytest.mark.parametrize("end", [40, 60])
async def test_checkpoint_without_the_ones_before_it_names_a_step_that_differs(end: int) -> None:
    log, anew = await logs.played(replicas=6), await logs.played(replicas=9)
    history = await logs.all_records(log)
    first = await computed(await logs.copied(history[:end]))
    (last,) = await computed(log, first[-1])
    findings = await checkpoints.differing(anew, [last])
    before = {head.shard: head.step for head in first[-1].heads}
    ends = {head.shard: head.step for head in last.heads}
    expected = first_differing(history, await logs.all_records(anew))
    assert named(findings) == {
        shard: max(number, min(before[shard] + 1, ends[shard])) for shard, number in expected.items()
    }
    for finding in findings:
        shard = int(finding.where.split()[1])
        assert "from here on" not in finding.message or expected[shard] > before[shard]


async def test_log_that_lacks_the_last_checkpoint_gets_no_further_ones() -> None:
    log, anew = await logs.played(replicas=6), await logs.played(replicas=9)
    series = await computed(log)
    with pytest.raises(checkpoints.CheckpointError, match="rewritten"):
        await computed(anew, series[-1])
    with pytest.raises(checkpoints.CheckpointError, match="records are missing"):
        await computed(await logs.copied((await logs.all_records(log))[:-5]), series[-1])


def signed(series: list[Checkpoint]) -> list[bytes]:
    return [checkpoints.signed(checkpoints.encode(checkpoint), PRIVATE) for checkpoint in series]


async def three_checkpoints() -> list[Checkpoint]:
    history = await logs.all_records(await logs.played())
    series: list[Checkpoint] = []
    for end in (20, 40, 60):
        series += await computed(await logs.copied(history[:end]), series[-1] if series else None)
    return series


async def test_signed_checkpoints_are_read_back() -> None:
    series = await three_checkpoints()
    assert checkpoints.read(signed(series), PUBLIC) == series


async def test_changed_missing_and_foreign_checkpoints_are_refused() -> None:
    series = await three_checkpoints()
    lines = signed(series)
    changed = [lines[0].replace(b'"number":20', b'"number":21'), *lines[1:]]
    with pytest.raises(checkpoints.CheckpointError, match="checkpoint 1: its content was changed"):
        checkpoints.read(changed, PUBLIC)
    with pytest.raises(checkpoints.CheckpointError, match="some are missing"):
        checkpoints.read([lines[0], lines[2]], PUBLIC)
    foreign, _ = checkpoints.new_keys()
    others = [checkpoints.signed(checkpoints.encode(series[0]), checkpoints.private_key(foreign))]
    with pytest.raises(checkpoints.CheckpointError, match="signed with the key"):
        checkpoints.read(others, PUBLIC)
    unsigned = (
        lines[0].replace(b'"signature":"', '"signature":"é'.encode()),
        b'{"key":"\xff"}',
        b"[" * 5_000,
    )
    for line in (b"{}", *unsigned):
        with pytest.raises(checkpoints.CheckpointError, match="not a signed line"):
            checkpoints.read([line], PUBLIC)


@pytest.mark.parametrize("pem", [b"", b"no key", _PUBLIC])
def test_invalid_private_key_is_refused(pem: bytes) -> None:
    with pytest.raises(checkpoints.SigningError):
        checkpoints.private_key(pem)


async def test_file_continues_after_a_crash_in_the_middle_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "signed.jsonl"
    log = await logs.played()
    history = await logs.all_records(log)
    sink = checkpoint_signing.FileSink(path)
    await checkpoint_signing.extend(await logs.copied(history[:30]), sink, PRIVATE, 1)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"content":{"number":')
    await checkpoint_signing.extend(log, sink, PRIVATE, 2)
    series = checkpoints.read(await sink.lines(), PUBLIC)
    assert [checkpoint.number for checkpoint in series] == [30, log.last_number()]
    assert path.read_bytes().startswith(whole)


async def test_checkpoint_that_cannot_be_written_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The loggers of the tests drop errors.
    everything = structlog.make_filtering_bound_logger(0)
    monkeypatch.setattr(checkpoint_signing, "_log", structlog.wrap_logger(None, wrapper_class=everything))
    log, stopping = await logs.played(), asyncio.Event()
    stopping.set()
    schedule = checkpoint_signing.Schedule(PRIVATE, 1, str(tmp_path))
    with structlog.testing.capture_logs() as lines:
        await checkpoint_signing.run(schedule, lambda: contextlib.nullcontext(log), lambda: 1, stopping)
    assert [(line["event"], line["to"]) for line in lines] == [("checkpoint not signed", str(tmp_path))]


async def test_schedule_signs_new_records_and_once_more_at_the_stop(tmp_path: Path) -> None:
    path = tmp_path / "signed.jsonl"
    log = local.MemoryLog()
    history = await logs.all_records(await logs.played())
    stopping = asyncio.Event()
    schedule = checkpoint_signing.Schedule(PRIVATE, 0.01, str(path))
    await log.append(logs.to_append(history[:20]))
    running = asyncio.create_task(
        checkpoint_signing.run(schedule, lambda: contextlib.nullcontext(log), lambda: 1, stopping)
    )
    while not path.exists() or not path.read_bytes():  # noqa: ASYNC110  # a file cannot be awaited
        await asyncio.sleep(0.005)
    await log.append(logs.to_append(history[20:]))
    stopping.set()
    await running
    series = checkpoints.read(await checkpoint_signing.FileSink(path).lines(), PUBLIC)
    assert series[-1].number == len(history)
