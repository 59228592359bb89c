"""Check the records of a log for its proof: the step that emitted each output of the engine, and the order of records.

All records are read once in number order. A step is valid if it follows the last valid step of its shard
(``events.chain``). Each output must come after its step, and each step after its inputs. If a record has the form of
an output but no valid step emitted it, it is a finding if it has an effect, else a note.
"""

from collections.abc import Collection, Mapping
from typing import Final

from msgspec import Struct

from events import chain, codec, decisions, ids, records, rejections, release, topics
from events.records import StoredRecord

_INPUTS: Final = (*topics.FACT_TOPICS, *topics.OWN_TOPICS)
_ANY_OFFSET: Final = 2**63


Partition = tuple[str, int]
"""Topic and partition."""

Position = tuple[str, int, int]
"""Topic, partition and offset of a record."""


class Finding(Struct, frozen=True):
    """A deviation: its kind, its location, and a message with what was expected."""

    kind: str
    where: str
    message: str


class _CandidateOutput(Struct, frozen=True, gc=False):
    """A record with the form of an output, not matched with a step yet: output id, content digest, position."""

    output: str
    checksum: bytes
    position: Position


class RecordOrigins:
    """Checks all records. ``findings`` are errors; ``notes`` are mostly foreign records without effect.

    Only outputs and steps of ``shards`` are checked; outputs whose id names no shard are checked with shard 0. Steps
    with a sequence number above ``until`` are not proved, so their outputs are not findings. ``starts`` has, by shard,
    the chain of steps before the first record that is read (default: no steps); the outputs of these steps are not
    checked. ``unnumbered`` says why outputs of the last steps may have no sequence numbers; empty if all have them.
    """

    unnumbered = ""

    def __init__(
        self,
        until: int,
        shards: Collection[int] = range(topics.SHARDS),
        starts: Mapping[int, chain.Chain] | None = None,
    ) -> None:
        self._until = until
        self._shards = frozenset(shards)
        self._later: set[Position] = set()
        """Outputs of proved steps that have numbers above ``until``."""
        self.chains = {shard: chain.Chain(shard) for shard in shards}
        self._before = dict.fromkeys(shards, 0)
        self._unseen = self._unreadable = 0
        self._starts = dict.fromkeys(shards, 0)
        for shard, start in (starts or {}).items():
            self.chains[shard] = start
            self._starts[shard] = start.number
            self._before[shard] = start.number
            # Inputs of the first steps may come before the first record that is read: assume that they exist.
            self._unseen = _ANY_OFFSET
        self.findings: list[Finding] = []
        self.notes: list[Finding] = []
        self._firsts: dict[str, _CandidateOutput] = {}
        self._repeats: list[_CandidateOutput] = []
        self._inputs: set[Position] = set()
        """Positions of unmatched candidate outputs that are also inputs of a shard."""
        self._refused: set[Position] = set()
        """Positions of refused inputs: in ``_inputs``, or not read yet when the rejection was read."""
        self._seen: dict[Partition, int] = {}
        self._early: dict[tuple[int, int, int], dict[str, tuple[str, str]]] = {}
        """Outputs read before their step: the mark (``chain.mark_of``) and position of the record, by output id."""
        self._broken: dict[int, Finding] = {}
        self._previous: dict[str, int] = {}

    @property
    def entry_count(self) -> int:
        """Number of entries in memory: for outputs whose steps are not computed yet, and for foreign records."""
        early = sum(map(len, self._early.values()))
        kept = self._firsts, self._repeats, self._later, self._inputs, self._refused
        return early + sum(map(len, kept))

    def take(self, record: StoredRecord) -> None:
        """Check the next record; the caller passes all records in number order."""
        self._seen[record.topic, record.partition] = record.offset + 1
        if record.topic == topics.REJECTIONS:
            self._take_rejection(record)
        if (
            record.topic == topics.DECISIONS
            and record.partition in self._shards
            and chain.may_be_step(record)
        ):
            step = codec.event_of(record)
            if isinstance(step, decisions.StepTaken):
                self._take_step(record, step)
                return
        if record.headers.get("ce_source", "").startswith(ids.SHARD_SOURCE):
            self._take_output(record)

    def mark_read(self, ends: Mapping[Partition, int]) -> None:
        """Mark partitions as read up to these end offsets; skipped records before them do not concern the shards."""
        self._seen.update(ends)

    def skip_unreadable(self) -> None:
        """Count a record that cannot be read.

        Its partition is unknown, so the checks of order tolerate one more missing input in every partition.
        """
        self._unreadable += 1

    def exclude_outputs(self, step: decisions.StepTaken) -> None:
        """Exclude a step's outputs from the checks, whether they were read already or are read later."""
        self._before[step.shard] = step.number
        for index in range(1, step.outputs + 1):
            self._drop(self._firsts.pop(ids.output_id(step.shard, step.term, step.number, index), None))

    def output(self, output: str, checksum: bytes) -> bool | None:
        """Match the output with the id ``output``, which a step emitted, with a record read so far.

        Return True if a record has the id and ``checksum``, False if records have only the id, None if none has the id.
        """
        first = self._firsts.get(output)
        if first is None:
            return None
        if first.checksum == checksum:
            self._drop(self._firsts.pop(output))
            return True
        for other in self._repeats:
            if (other.output, other.checksum) == (output, checksum):
                self._repeats.remove(other)
                self._drop(other)
                return True
        return False

    def _drop(self, kept: _CandidateOutput | None) -> None:
        """Forget the position of a candidate output that was matched or excluded."""
        if kept is not None and kept.position[0] in _INPUTS:
            self._inputs.discard(kept.position)
            self._refused.discard(kept.position)

    def close(self, proved: Mapping[int, bool]) -> None:
        """Report the unmatched records, which no step emitted, of the shards whose steps are all ``proved``."""
        self.findings += [self._broken[shard] for shard in sorted(self._broken)]
        for where, count in sorted(self._previous.items()):
            message = f"{count} outputs have smaller numbers than their steps: an earlier release assigned the numbers"
            self.notes.append(Finding(kind="order", where=where, message=message))
        for kept in (*self._firsts.values(), *self._repeats):
            shard, where = _shard_of(kept.output), str(records.Position(*kept.position))
            if kept.position in self._later or (shard is not None and not proved.get(shard, False)):
                continue
            message = f"{kept.output or 'a record without an id'} is not an output of any step"
            if self._has_effect(kept, shard):
                self.findings.append(Finding(kind="added", where=where, message=message))
            else:
                message += "; it has no effect"
                self.notes.append(Finding(kind="foreign", where=where, message=message))

    def _has_effect(self, kept: _CandidateOutput, shard: int | None) -> bool:
        """Whether readers apply a candidate output that no step emitted.

        Readers apply inputs that were not refused. They also apply a record whose id names a step of a release before
        0.5: such a step declares only how many outputs it has, so readers cannot recognize a foreign record.
        """
        if kept.position[0] in _INPUTS:
            return kept.position not in self._refused
        return shard is not None and self.chains[shard].is_undeclared_output(kept.output)

    def _take_rejection(self, record: StoredRecord) -> None:
        data = codec.event_of(record)
        if not isinstance(data, rejections.InputRejected):
            return
        position = data.topic, data.partition, data.offset
        # Store only rejections of candidate outputs and of inputs that are not read yet: no check needs the others,
        # and all rejections would fill the memory.
        if position in self._inputs or self._seen.get(position[:2], self._unseen) <= data.offset:
            self._refused.add(position)

    def _take_output(self, record: StoredRecord) -> None:
        output = record.headers.get("ce_id", "")
        shard = _shard_of(output)
        if (0 if shard is None else shard) not in self._shards:
            return
        if shard is not None and ids.step_of(output)[2] <= self._before[shard]:
            return
        position = record.topic, record.partition, record.offset
        if record.number > self._until:
            if shard is None or ids.step_of(output)[2] > self.chains[shard].number:
                return  # an output of a step that is not proved
            self._later.add(position)
        if not output:
            message = "the record names a shard as its source, but has no id; it has no effect"
            self.notes.append(Finding(kind="foreign", where=str(record.position), message=message))
            return
        kept = _CandidateOutput(output, record.checksum, position)
        if output in self._firsts:
            self._repeats.append(kept)
        else:
            self._firsts[output] = kept
        if record.topic in _INPUTS:
            self._inputs.add(position)
        if record.topic != topics.DECISIONS and shard is not None:
            _, term, number = ids.step_of(output)
            if number > self.chains[shard].number:
                early = self._early.setdefault((shard, term, number), {})
                early[output] = (chain.mark_of(record), str(record.position))

    def _take_step(self, record: StoredRecord, step: decisions.StepTaken) -> None:
        if step.number <= self._starts[record.partition] or record.number > self._until:
            return
        expected = self.chains[record.partition]
        if expected.take(record, step):
            if record.partition in self._broken:
                # This step continues the chain, so the earlier record that seemed to break the chain was foreign: it
                # was no step of this shard.
                earlier = self._broken.pop(record.partition)
                message = "the record claims to be a step, but does not continue the chain; it has no effect"
                self.notes.append(Finding(kind="foreign", where=earlier.where, message=message))
            self._check_order(record, step)
            return
        where = str(record.position)
        if step.term < expected.term or step.number <= expected.number or not _has_own_envelope(record, step):
            message = (
                f"the record claims to be step {step.number} of shard {expected.shard}; it has no effect"
            )
            self.notes.append(Finding(kind="foreign", where=where, message=message))
            return
        message = (
            f"step {step.number} does not follow step {expected.number} "
            f"of shard {expected.shard}: the chain is broken"
        )
        self._broken.setdefault(record.partition, Finding(kind="chain", where=where, message=message))

    def _check_order(self, record: StoredRecord, step: decisions.StepTaken) -> None:
        """Check that a valid step comes after its inputs and before its outputs."""
        where = str(record.position)
        for topic, end in sorted(step.ends.items()):
            slot = (topic, 0 if topic in topics.FACT_TOPICS else step.shard)
            if self._seen.get(slot, self._unseen) + self._unreadable < end:
                message = (
                    f"the step's number is smaller than that of the last input of {topic} that it processed"
                )
                self.findings.append(Finding(kind="order", where=where, message=message))
        early = self._early.pop((step.shard, step.term, step.number), {})
        for output, (mark, position) in early.items():
            index = int(output.rpartition("-")[2])
            if step.declared and chain.mark_at(step.declared, index) != mark:
                continue
            if step.release != release.RELEASE:
                shard = f"shard {step.shard}"
                self._previous[shard] = self._previous.get(shard, 0) + 1
            else:
                message = f"output {output} has a smaller number than its step, {where}"
                self.findings.append(Finding(kind="order", where=position, message=message))


def _has_own_envelope(record: records.StoredRecord, step: decisions.StepTaken) -> bool:
    """Whether the record of a step has the event id and the source that the shard's owner writes."""
    output = ids.output_id(step.shard, step.term, step.number, 0)
    source = f"{ids.SHARD_SOURCE}{step.shard}"
    return (record.headers.get("ce_id"), record.headers.get("ce_source")) == (output, source)


def _shard_of(output: str) -> int | None:
    """Return the shard in an output's id; None if the id is not one of an output."""
    try:
        shard, _term, _number = ids.step_of(output)
        return shard if int(output.rpartition("-")[2]) >= 0 and 0 <= shard < topics.SHARDS else None
    except ValueError:
        return None
