"""Which steps of a shard count: a pure fold over its partition of decisions, the same for owners and views.

A step counts only if it is the successor of the last one that did: the next number, the digest of that one,
and a term not lower (design section 5). What an ignored step gave is ignored with it, and counted. So what a
stale owner, or a repeated append, leaves in the log is harmless and visible.

A step declares its outputs by their digests, in whatever topic they stand; nothing else is an output of it. Steps of
releases before 0.5 declare how many there are, and the ids of outputs tell the rest.
"""

import base64
import hashlib

from msgspec import Struct

from events import decisions, ids, records, shapes

_DIGEST_BYTES = 16
_MARK_BYTES = 12
MARK_CHARS = 17
"""The length of a mark: a letter, and 12 bytes in base64."""


def step_digest(value: bytes) -> str:
    """The digest by which the next step names this one: BLAKE2b of the bytes of its ``StepTaken``, in hex."""
    return hashlib.blake2b(value, digest_size=_DIGEST_BYTES).hexdigest()


def mark_of(output: records.Record | records.StoredRecord) -> str:
    """What a step declares of an output: the initial letter of its topic, and the beginning of its checksum."""
    return output.topic[0] + base64.b64encode(output.checksum[:_MARK_BYTES]).decode()


def mark_at(declared: str, index: int) -> str:
    """The mark of a step's output with this index, which counts from 1; empty where there is none."""
    return declared[(index - 1) * MARK_CHARS : index * MARK_CHARS]


class Chain(Struct):
    """The steps of one shard that count, as far as they were folded.

    ``number``, ``term`` and ``digest`` are those of the last step, ``outputs`` and ``declared`` what it says of its
    outputs, ``eras`` the number at which each term began. ``bare`` are first and last numbers of steps in a row that
    declared no digests. ``ignored`` counts the records that have no effect.
    """

    shard: int
    number: int = 0
    term: int = 0
    digest: str = ""
    eras: list[tuple[int, int]] = []
    ignored: int = 0
    is_open: bool = False
    last_index: int = 0
    outputs: int = 0
    declared: str = ""
    bare: list[tuple[int, int]] = []

    def take(self, record: records.StoredRecord, data: shapes.Event) -> bool:
        """Whether the next record of the shard's decisions counts; the chain moves on."""
        counts = (
            self._take_step(record, data)
            if isinstance(data, decisions.StepTaken)
            else self._take_output(record)
        )
        self.ignored += not counts
        return counts

    def gave(self, output: str) -> bool:
        """Whether an id is one of an output of a step that counted and declared no digests."""
        try:
            shard, term, number = ids.step_of(output)
        except ValueError:
            return False
        return shard == self.shard and self._is_bare(number) and self._term_at(number) == term

    def _take_step(self, record: records.StoredRecord, step: decisions.StepTaken) -> bool:
        counts = (
            step.shard == self.shard
            and step.number == self.number + 1
            and step.term >= self.term
            and step.previous == self.digest
        )
        if not counts:
            # Declared outputs are known by their digests, whoever writes between the step and them.
            self.is_open = self.is_open and bool(self.declared)
            return False
        self.is_open = True
        if not self.eras or step.term > self.term:
            self.eras.append((step.number, step.term))
        self.number, self.term, self.digest = step.number, step.term, step_digest(record.value)
        self.last_index = 0
        self.outputs, self.declared = step.outputs, step.declared
        if step.outputs and not step.declared:
            self._add_bare(step.number)
        return True

    def _take_output(self, record: records.StoredRecord) -> bool:
        """An output stands behind its step, in the order of its index: so a repeated one has no effect."""
        try:
            shard, term, number, index = map(int, record.headers.get("ce_id", "").split("-"))
        except ValueError:
            return False
        mine = self.is_open and (shard, term, number) == (self.shard, self.term, self.number)
        if not mine or not self.last_index < index <= self.outputs:
            return False
        if self.declared and mark_at(self.declared, index) != mark_of(record):
            return False
        self.last_index = index
        return True

    def _add_bare(self, number: int) -> None:
        if self.bare and self.bare[-1][1] == number - 1:
            self.bare[-1] = (self.bare[-1][0], number)
        else:
            self.bare.append((number, number))

    def _is_bare(self, number: int) -> bool:
        return any(first <= number <= last for first, last in reversed(self.bare))

    def _term_at(self, number: int) -> int:
        """The term of a step that counted. Owners are few, and mostly the last one is asked for."""
        for first, term in reversed(self.eras):
            if first <= number:
                return term
        return -1
