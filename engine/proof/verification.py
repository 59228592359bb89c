"""Prove a log: compute every step again from its inputs and compare the bytes.

The proof also checks each record's checksum, the chain of step digests, that every output of a step is in the log
with a larger number than the step, and that readers applied no other record as an output. Foreign records without
effect, such as late appends of a former owner, are notes, not errors. Steps of another release are compared too;
their deviations are reported as differences between releases.

The log may grow meanwhile; only steps that have sequence numbers when the proof begins are proved.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from engine.log import port
from engine.proof.record_origins import Finding, RecordOrigins
from engine.proof.single_reading import SingleReading
from engine.reconcilers import recovery, replay, snapshots
from events import chain, codec, decisions, records, release, topics

Progress = Callable[[int, int], None]
"""Called with the sequence number of the last record read, and the count of steps proved so far."""


class Scope(Struct, frozen=True):
    """The part of a log to prove: steps of ``shards`` with sequence numbers from ``first`` to ``last`` (None: the end).

    Steps before ``first`` are replayed as recorded, because the state before ``first`` depends on them.
    """

    shards: tuple[int, ...] = tuple(range(topics.SHARDS))
    first: int = 1
    last: int | None = None


EVERYTHING: Final = Scope()


class Report(Struct):
    """Result of a proof. Only ``findings`` are errors; ``differences`` are deviations of steps of another release.

    A shard is proved up to its first finding or difference; a note of the kind ``unproved`` says which steps are not.
    """

    steps: int = 0
    records: int = 0
    findings: list[Finding] = []
    differences: list[Finding] = []
    notes: list[Finding] = []

    @property
    def is_clean(self) -> bool:
        """Whether there are no findings."""
        return not self.findings


async def verify(
    log: port.NumberedLog,
    scope: Scope = EVERYTHING,
    *,
    snapshot: snapshots.Snapshot | None = None,
    progress: Progress | None = None,
) -> Report:
    """Prove a part of the log, at most up to its present last sequence number.

    With a ``snapshot``, only the records after it are read; its state is trusted, not proved.
    """
    report = Report()
    until = log.last_number() if scope.last is None else min(scope.last, log.last_number())
    starts = {} if snapshot is None else {shard: snapshot.chain(shard) for shard in scope.shards}
    origins = RecordOrigins(until, scope.shards, starts)
    try:
        # Wait until the outputs of the last steps have numbers: an output may get its number later than its step.
        await log.wait_current()
    except port.UnnumberedError as error:
        origins.unnumbered = str(error)
    after = 0 if snapshot is None else await _number_of(log, snapshot, scope.shards)

    def count_records(count: int, number: int) -> None:
        report.records += count
        if progress is not None:
            progress(number, report.steps)

    reading = SingleReading(log, scope.shards, origins, after, count_records)
    proved = await _verify_shards(scope, until, reading, origins, report, snapshot)
    await reading.read_past(until)
    origins.close(proved)
    report.findings += [
        Finding(kind="checksum", where=f"number {number}", message=str(error))
        for number, error in reading.unreadable
    ]
    report.findings += [
        Finding(
            kind="offset",
            where=f"number {record.number}",
            message=f"the record has the offset {record.offset} in {record.topic}/{record.partition}, not {offset}",
        )
        for record, offset in reading.misplaced
    ]
    report.findings += origins.findings
    report.notes += origins.notes
    return report


async def _number_of(log: port.Log, snapshot: snapshots.Snapshot, shards: Iterable[int]) -> int:
    """Return the smallest sequence number among the shards' last steps in a snapshot; 0 if a shard has no step."""
    numbers: list[int] = []
    for shard in shards:
        records = await log.read(topics.DECISIONS, shard, snapshot.shards[shard].offset, 1)
        numbers.append(records[0].number if records and snapshot.shards[shard].state.number else 0)
    return min(numbers)


def merged(reports: Iterable[Report]) -> Report:
    """Merge reports about different shards of a log; ``records`` is the maximum, since each proof reads all records."""
    total = Report()
    for report in reports:
        total.steps += report.steps
        total.records = max(total.records, report.records)
        for kind in ("findings", "differences", "notes"):
            findings: list[Finding] = getattr(total, kind)
            # All proofs report the same unreadable records: add each finding once.
            findings[:] = dict.fromkeys([*findings, *getattr(report, kind)])
    return total


async def _verify_shards(
    scope: Scope,
    until: int,
    reading: SingleReading,
    origins: RecordOrigins,
    report: Report,
    snapshot: snapshots.Snapshot | None,
) -> dict[int, bool]:
    """Compute the scope's steps again; return for each readable shard whether all are equal to the recorded steps."""
    # Read recorded outputs only if there are steps before the scope: only those are applied as recorded.
    replayed = replay.Replay(reading, scope.shards, snapshot, outputs=scope.first > 1, last=until)
    proved = dict.fromkeys(scope.shards, True)
    async for step in replayed.steps():
        recorded, taken = step.recorded, step.recorded.taken
        await reading.read_past(recorded.record.number)
        if recorded.record.number < scope.first:
            step.fold.replay(step.facts, taken, recorded.record.value, recorded.data)
            origins.exclude_outputs(taken)
            continue
        recomputed = step.fold.decide(step.facts, taken.time_ms, taken.processed, term=taken.term)
        findings = await _compare(recorded, recomputed.records, reading, origins)
        if origins.unnumbered and any(finding.kind == "missing" for finding in findings):
            # The output may be in the log, among the records without sequence numbers: this is not an error.
            report.notes.append(Finding(kind="unproved", where=findings[0].where, message=origins.unnumbered))
        elif findings:
            deviations = report.findings if taken.release == release.RELEASE else report.differences
            deviations += findings
            report.notes.append(_not_computed(findings[0].where, recorded.record.number))
        report.steps += 1
        if findings:
            # The computed state now differs from the recorded one, so all later steps would differ as well.
            proved[taken.shard] = False
            replayed.leave_out(taken.shard)
        else:
            # The next step names the digest of the recorded step. A step of another release that is computed again
            # has another digest, since it names this release.
            step.fold.state.digest = chain.step_digest(recorded.record.value)
    for shard, error in replayed.unreadable.items():
        del proved[shard]
        report.findings.append(Finding(kind="unreadable", where=f"shard {shard}", message=str(error)))
    return proved


def _not_computed(where: str, number: int) -> Finding:
    message = (
        "the shard's later steps were not computed, since they follow from this one;"
        f" compute them with `log verify --from {number + 1}`, which replays this step as recorded"
    )
    return Finding(kind="unproved", where=where, message=message)


async def _compare(
    step: recovery.RecordedStep,
    recomputed: list[records.Record],
    reading: SingleReading,
    origins: RecordOrigins,
) -> list[Finding]:
    where = f"shard {step.taken.shard} step {step.taken.number} ({step.record.position})"
    for record in recomputed[1:]:
        output = record.headers["ce_id"]
        is_equal = origins.output(output, record.checksum)
        while not is_equal and await reading.read_more():
            is_equal = origins.output(output, record.checksum)
        match is_equal:
            case None:
                message = f"output {output} ({record.headers['ce_type']}) is not in the log"
                return [Finding(kind="missing", where=where, message=message)]
            case False:
                subject = record.headers.get("ce_subject", "")
                message = f"output {output} ({record.headers['ce_type']} of {subject}) differs"
                return [Finding(kind="recomputed", where=where, message=message)]
            case True:
                continue
    if recomputed[0].checksum == step.record.checksum:
        return []
    computed = codec.event_of(recomputed[0])
    names = ["?"] if computed is None else _differing(step.taken, computed)
    if step.taken.release != release.RELEASE:
        # The outputs are equal (compared above). Ignore fields of the step that differ between releases anyway.
        names = [name for name in names if name not in _RELEASE_FIELDS]
        if not names:
            return []
    message = f"the step's basis or result differs in: {', '.join(names) or 'the envelope'}"
    return [Finding(kind="recomputed", where=where, message=message)]


_RELEASE_FIELDS: Final = frozenset({"release", "previous", "outputs_digest", "declared"})


def _differing(recorded: decisions.StepTaken, computed: object) -> list[str]:
    fields = decisions.StepTaken.__struct_fields__
    return [name for name in fields if getattr(recorded, name) != getattr(computed, name)]
