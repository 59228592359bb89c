"""Which steps of a shard count: a pure fold over its partition of decisions, the same for owners and views.

A step counts only if it is the successor of the last one that did: the next number, the digest of that one,
and a term not lower (design section 5). What an ignored step gave is ignored with it, and counted. So what a
stale owner, or a repeated append, leaves in the log is harmless and visible.
"""

import hashlib

from msgspec import Struct

from events import decisions, ids, records, shapes

_DIGEST_BYTES = 16


def step_digest(value: bytes) -> str:
    """The digest by which the next step names this one: BLAKE2b of the bytes of its ``StepTaken``, in hex."""
    return hashlib.blake2b(value, digest_size=_DIGEST_BYTES).hexdigest()


class Chain(Struct):
    """The steps of one shard that count, as far as they were folded.

    ``number``, ``term`` and ``digest`` are those of the last step, ``eras`` the number at which each term
    began. ``ignored`` counts the records that have no effect.
    """

    shard: int
    number: int = 0
    term: int = 0
    digest: str = ""
    eras: list[tuple[int, int]] = []
    ignored: int = 0
    is_open: bool = False
    last_index: int = 0

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
        """Whether the record with this id, in whatever topic, is an output of a step that counted."""
        try:
            shard, term, number = ids.step_of(output)
        except ValueError:
            return False
        return shard == self.shard and 0 < number <= self.number and self._term_at(number) == term

    def _take_step(self, record: records.StoredRecord, step: decisions.StepTaken) -> bool:
        self.is_open = (
            step.shard == self.shard
            and step.number == self.number + 1
            and step.term >= self.term
            and step.previous == self.digest
        )
        if not self.is_open:
            return False
        if not self.eras or step.term > self.term:
            self.eras.append((step.number, step.term))
        self.number, self.term, self.digest = step.number, step.term, step_digest(record.value)
        self.last_index = 0
        return True

    def _take_output(self, record: records.StoredRecord) -> bool:
        """An output stands behind its step, in the order of its index: so a repeated one has no effect."""
        try:
            shard, term, number, index = map(int, record.headers.get("ce_id", "").split("-"))
        except ValueError:
            return False
        mine = self.is_open and (shard, term, number) == (self.shard, self.term, self.number)
        if not mine or index <= self.last_index:
            return False
        self.last_index = index
        return True

    def _term_at(self, number: int) -> int:
        """The term of a step that counted. Owners are few, and mostly the last one is asked for."""
        for first, term in reversed(self.eras):
            if first <= number:
                return term
        return -1
