"""Fold over a shard's partition of ``decisions`` that determines which steps are valid.

The fold is pure; owners and projections run the same one. A step is valid only as the successor of the last valid
step: it must have the next number, the digest of that step as ``previous``, and a term that is not lower. Other
steps and their outputs have no effect; ``ignored`` is their number. So late appends of a fenced owner and repeated
appends are harmless and visible.

A step declares its outputs in all topics by their digests; no other record is its output. Steps of releases
before 0.5 declare only the number of outputs, which are identified by their ids.
"""

import base64
import hashlib

from msgspec import Struct

from events import catalogue, decisions, ids, records, shapes

_DIGEST_BYTES = 16
_MARK_BYTES = 12
MARK_CHARS = 17
"""Length of a mark, which identifies an output in ``StepTaken.declared``: a letter, and 12 bytes in base64."""


def step_digest(value: bytes) -> str:
    """Return the digest by which the next step refers to this one: BLAKE2b of the ``StepTaken`` bytes, in hex."""
    return hashlib.blake2b(value, digest_size=_DIGEST_BYTES).hexdigest()


def mark_of(output: records.Record | records.StoredRecord) -> str:
    """Return the mark by which a step declares an output: first letter of its topic, first bytes of its checksum."""
    return output.topic[0] + base64.b64encode(output.checksum[:_MARK_BYTES]).decode()


def mark_at(declared: str, index: int) -> str:
    """Return the mark of the output with this index (from 1) in a step's ``declared``; empty if there is none."""
    return declared[(index - 1) * MARK_CHARS : index * MARK_CHARS]


def may_be_step(record: records.StoredRecord) -> bool:
    """Whether a record of ``decisions`` may be a step; True in structured content mode, as its headers have no type."""
    return record.headers.get("ce_type") == catalogue.STEP_TAKEN or records.is_structured(record.headers)


class Chain(Struct):
    """State of the fold of one shard; "last step" means the last valid step.

    ``number``, ``term``, ``outputs`` and ``declared`` are fields of the last step, ``digest`` is its ``step_digest``.
    While ``is_open``, more of its outputs may follow; ``last_index`` is the index of its last output so far. ``eras``
    has (first step number, term) of each term. ``bare`` has ranges (first, last) of steps that declared no digests.
    ``ignored`` is the number of records without effect.
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
        """Fold the next record of the shard's decisions; return whether it takes effect."""
        counts = (
            self._take_step(record, data)
            if isinstance(data, decisions.StepTaken)
            else self._take_output(record)
        )
        self.ignored += not counts
        return counts

    def is_undeclared_output(self, output: str) -> bool:
        """Return whether an output's id names a valid step without digests of its outputs (releases before 0.5)."""
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
            # The last valid step accepts no more outputs, unless it declared digests: by these its outputs are
            # recognised even after an invalid step.
            self.is_open = self.is_open and bool(self.declared)
            return False
        self.is_open = True
        if not self.eras or step.term > self.term:
            self.eras.append((step.number, step.term))
        self.number, self.term, self.digest = step.number, step.term, step_digest(record.value)
        self.last_index = 0
        self.outputs, self.declared = step.outputs, step.declared
        if step.outputs and not step.declared:
            self._add_undeclared_step(step.number)
        return True

    def _take_output(self, record: records.StoredRecord) -> bool:
        """Return whether an output takes effect. Indexes must ascend within a step, so a repeated output has none."""
        try:
            shard, term, number, index = map(int, record.headers.get("ce_id", "").split("-"))
        except ValueError:
            return False
        is_of_step = self.is_open and (shard, term, number) == (self.shard, self.term, self.number)
        if not is_of_step or not self.last_index < index <= self.outputs:
            return False
        if self.declared and mark_at(self.declared, index) != mark_of(record):
            return False
        self.last_index = index
        return True

    def _add_undeclared_step(self, number: int) -> None:
        if self.bare and self.bare[-1][1] == number - 1:
            self.bare[-1] = (self.bare[-1][0], number)
        else:
            self.bare.append((number, number))

    def _is_bare(self, number: int) -> bool:
        return any(first <= number <= last for first, last in reversed(self.bare))

    def _term_at(self, number: int) -> int:
        """Return the term of a valid step.

        Searches from the end, because terms are few and most callers need the term of a recent step.
        """
        for first, term in reversed(self.eras):
            if first <= number:
                return term
        return -1
