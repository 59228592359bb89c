"""Proving a log: every step is computed again from its inputs, and must give the same bytes.

Also proved: each record's checksum, the chain of the steps' digests, that every output of a step stands in the log,
and that nothing else passes for one. What an owner wrote that was followed already has no effect, and is no fault.
A step of another release of the rules is compared too; what differs is told as a difference of releases, not as an
error.
"""

from collections.abc import AsyncIterator, Callable

from msgspec import Struct

from engine.deciders.facts import Facts
from engine.log import port
from engine.reconcilers import recovery
from events import chain, codec, decisions, ids, records, release, topics

Progress = Callable[[int, int], None]
"""Called with the shard and the number of steps proved in it so far."""


class Finding(Struct, frozen=True):
    """Something that is not as it must be: where, what kind, and what was expected."""

    kind: str
    where: str
    message: str


class Report(Struct):
    """What was proved. ``differences`` come from steps of another release."""

    steps: int = 0
    records: int = 0
    findings: list[Finding] = []
    differences: list[Finding] = []

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


class _Written:
    """What steps gave, as it stands in the log: checksums by id, and the chain of each shard's steps."""

    def __init__(self) -> None:
        self.checksums: dict[str, bytes] = {}
        self.chains = [chain.Chain(shard) for shard in range(topics.SHARDS)]
        self._broken: set[int] = set()

    def take(self, record: records.StoredRecord) -> Finding | None:
        """Takes in the next record of the log; tells what is wrong with where it stands."""
        wrong = self._join(record) if record.topic == topics.DECISIONS else None
        if not record.headers.get("ce_source", "").startswith(ids.SHARD_SOURCE):
            return wrong
        output = record.headers["ce_id"]
        if self.checksums.setdefault(output, record.checksum) != record.checksum:
            message = f"output {output} was written before, and was another one"
            return Finding(kind="added", where=str(record.position), message=message)
        return wrong

    def _join(self, record: records.StoredRecord) -> Finding | None:
        decoded = codec.decode(record)
        links = self.chains[record.partition]
        if not isinstance(decoded, codec.Decoded) or links.take(record, decoded.data):
            return None
        data = decoded.data
        if not isinstance(data, decisions.StepTaken) or data.term < links.term:
            return None
        if record.partition in self._broken:
            return None
        self._broken.add(record.partition)
        message = f"step {data.number} does not follow step {links.number} of shard {links.shard}: the chain is broken"
        return Finding(kind="chain", where=str(record.position), message=message)


async def verify(log: port.NumberedLog, progress: Progress | None = None) -> Report:
    """Proves the whole log."""
    report = Report()
    written = await _outputs(log, report)
    for shard in range(topics.SHARDS):
        try:
            if await _verify_shard(log, shard, written.checksums, report, progress):
                report.findings += _added(shard, written)
        except port.LogError as error:
            report.findings.append(Finding(kind="unreadable", where=f"shard {shard}", message=str(error)))
    return report


def _added(shard: int, written: _Written) -> list[Finding]:
    """What passes for an output of a proved step, and is none."""
    links = written.chains[shard]
    message = "it names a step that did not give it"
    return [
        Finding(kind="added", where=f"shard {shard} output {output}", message=message)
        for output in written.checksums
        if links.gave(output)
    ]


async def _outputs(log: port.NumberedLog, report: Report) -> _Written:
    """All records that steps gave; proves each record's own checksum."""
    written = _Written()
    async for record in _readable(log, report):
        report.records += 1
        blob = records.headers_json(record.headers)
        digest = records.checksum(record.topic, record.partition, record.key, blob, record.value)
        if digest != record.checksum:
            message = "the record is not what was appended: its checksum differs"
            report.findings.append(Finding(kind="checksum", where=str(record.position), message=message))
        wrong = written.take(record)
        if wrong is not None:
            report.findings.append(wrong)
    return written


async def _readable(log: port.NumberedLog, report: Report) -> AsyncIterator[records.StoredRecord]:
    """All records; one that can't be read is a finding, and the walk goes on behind it."""
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


async def _verify_shard(
    log: port.Log, shard: int, written: dict[str, bytes], report: Report, progress: Progress | None
) -> bool:
    """Whether all steps of a shard are right; what is proved is taken out of ``written``."""
    fold, facts = recovery.new_fold(shard), Facts()
    async for step in recovery.steps(log, shard):
        await recovery.take_inputs(log, fold, facts, step.taken)
        again = fold.decide(facts, step.taken.time_ms, step.taken.processed, term=step.taken.term)
        found = _compare(step, again.records, written)
        same_release = step.taken.release == release.RELEASE
        (report.findings if same_release else report.differences).extend(found)
        report.steps += 1
        if found:
            # From here on the computed state is not the recorded one: each later step would differ as well.
            return False
        for record in again.records:
            written.pop(record.headers["ce_id"], None)
        if progress is not None:
            progress(shard, report.steps)
    return True


def _compare(
    step: recovery.RecordedStep, again: list[records.Record], written: dict[str, bytes]
) -> list[Finding]:
    where = f"shard {step.taken.shard} step {step.taken.number} ({step.record.position})"
    for record in again[1:]:
        output = record.headers["ce_id"]
        if output not in written:
            message = f"output {output} ({record.headers['ce_type']}) is not in the log"
            return [Finding(kind="missing", where=where, message=message)]
        if written[output] != record.checksum:
            message = f"output {output} ({record.headers['ce_type']} of {record.headers.get('ce_subject', '')}) differs"
            return [Finding(kind="recomputed", where=where, message=message)]
    if again[0].checksum != step.record.checksum:
        computed = codec.decode(again[0])
        names = _differing(step.taken, computed.data) if isinstance(computed, codec.Decoded) else "?"
        message = f"the step's basis or result differs in: {names}"
        return [Finding(kind="recomputed", where=where, message=message)]
    return []


def _differing(recorded: decisions.StepTaken, computed: object) -> str:
    fields = decisions.StepTaken.__struct_fields__
    return (
        ", ".join(name for name in fields if getattr(recorded, name) != getattr(computed, name))
        or "the envelope"
    )
