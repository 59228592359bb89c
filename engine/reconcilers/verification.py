"""Prove a log: compute every step again from its inputs; it must give the same bytes.

Also checked: each record's checksum, the chain of step digests, that every output of a step is in the log
with a larger number than the step, and that no other record had an effect as an output. Foreign records
without effect, such as late appends of a former owner, are noted and are no errors. Steps of another release
are compared too; deviations are reported as differences between releases.

The log may grow meanwhile: the steps are proved that have numbers when the proof begins.
"""

from collections.abc import AsyncIterator, Callable
from typing import Final

from msgspec import Struct

from engine.log import port
from engine.reconcilers import recovery, replay
from engine.reconcilers.record_origins import Finding, RecordOrigins
from events import codec, decisions, records, release, topics

Progress = Callable[[int, int], None]
"""Called with the shard and the total number of steps proved so far."""


class Report(Struct):
    """Result of a proof. ``differences`` come from steps of another release, ``notes`` are foreign without effect."""

    steps: int = 0
    records: int = 0
    findings: list[Finding] = []
    differences: list[Finding] = []
    notes: list[Finding] = []

    @property
    def is_clean(self) -> bool:
        """Whether there are no findings."""
        return not self.findings


async def verify(log: port.NumberedLog, progress: Progress | None = None) -> Report:
    """Prove the log up to its present last number."""
    report = Report()
    until = log.last_number()
    origins = RecordOrigins(until)
    try:
        # Outputs of the last steps may get their numbers later than the steps.
        await log.level()
    except port.UnnumberedError as error:
        origins.unnumbered = str(error)
    await _collect(log, origins, report)
    proved = await _verify_shards(log, until, origins, report, progress)
    origins.close(proved)
    report.findings += origins.findings
    report.notes += origins.notes
    return report


async def _collect(log: port.NumberedLog, origins: RecordOrigins, report: Report) -> None:
    """Read all records, check their checksums and collect the outputs of steps."""
    async for record in _readable(log, report):
        report.records += 1
        blob = records.headers_json(record.headers)
        digest = records.checksum(record.topic, record.partition, record.key, blob, record.value)
        if digest != record.checksum:
            message = "the record is not what was appended: its checksum differs"
            report.findings.append(Finding(kind="checksum", where=str(record.position), message=message))
        origins.take(record)


async def _readable(log: port.NumberedLog, report: Report) -> AsyncIterator[records.StoredRecord]:
    """Yield all records; an unreadable one becomes a finding and is skipped."""
    after = 0
    size = _READ
    while after < log.last_number():
        try:
            batch = await log.read_all(after, size)
        except port.LogCorruptedError as error:
            if size > 1:
                size = 1
                continue
            report.findings.append(Finding(kind="checksum", where=f"number {after + 1}", message=str(error)))
            after += 1
            continue
        for record in batch:
            yield record
        after = batch[-1].number


_READ = 1_000


async def _verify_shards(
    log: port.Log, until: int, origins: RecordOrigins, report: Report, progress: Progress | None
) -> dict[int, bool]:
    """Compute all steps up to a number again; return for each readable shard whether all of them are right."""
    replayed = replay.Replay(log, range(topics.SHARDS))
    proved = dict.fromkeys(range(topics.SHARDS), True)
    async for step in replayed.steps():
        taken = step.recorded.taken
        if step.recorded.record.number > until:
            replayed.leave_out(taken.shard)
            continue
        recomputed = step.fold.decide(step.facts, taken.time_ms, taken.processed, term=taken.term)
        findings = _compare(step.recorded, recomputed.records, origins)
        if origins.unnumbered and any(finding.kind == "missing" for finding in findings):
            # It may be among the records without numbers.
            report.notes.append(Finding(kind="unproved", where=findings[0].where, message=origins.unnumbered))
        elif taken.release == release.RELEASE:
            report.findings += findings
        else:
            report.differences += findings
        report.steps += 1
        if findings:
            # The computed state now differs from the recorded one, so every later step would differ as well.
            proved[taken.shard] = False
            replayed.leave_out(taken.shard)
        elif progress is not None:
            progress(taken.shard, report.steps)
    for shard, error in replayed.unreadable.items():
        del proved[shard]
        report.findings.append(Finding(kind="unreadable", where=f"shard {shard}", message=str(error)))
    return proved


def _compare(
    step: recovery.RecordedStep, recomputed: list[records.Record], origins: RecordOrigins
) -> list[Finding]:
    where = f"shard {step.taken.shard} step {step.taken.number} ({step.record.position})"
    for record in recomputed[1:]:
        output = record.headers["ce_id"]
        match origins.output(output, record.checksum):
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
    computed = codec.decode(recomputed[0])
    names = _differing(step.taken, computed.data) if isinstance(computed, codec.Decoded) else ["?"]
    if step.taken.release != release.RELEASE:
        # The outputs were compared one by one; these fields describe the release, not its decisions.
        names = [name for name in names if name not in _RELEASE_FIELDS]
        if not names:
            return []
    message = f"the step's basis or result differs in: {', '.join(names) or 'the envelope'}"
    return [Finding(kind="recomputed", where=where, message=message)]


_RELEASE_FIELDS: Final = frozenset({"release", "previous", "outputs_digest", "declared"})


def _differing(recorded: decisions.StepTaken, computed: object) -> list[str]:
    fields = decisions.StepTaken.__struct_fields__
    return [name for name in fields if getattr(recorded, name) != getattr(computed, name)]
