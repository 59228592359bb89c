"""Decide which records outside the topic ``decisions`` are outputs of a valid step.

A record takes effect once, and only if a valid step declares it. The fold is pure, so all readers of a topic come to
the same result. The fold needs the steps of all shards and every record that names a step. In some logs a record
precedes its step in the sequence: it is stored in ``early`` and judged again after the step.
"""

from collections import Counter
from enum import Enum
from typing import Final

from events import ids
from events.chain import MARK_CHARS, Chain, mark_of
from events.records import StoredRecord

EARLY_MAX: Final = 4_096
"""Maximum number of early records in memory, as any producer can write them; the oldest are dropped first."""

EARLY_BYTES_MAX: Final = 16 * 1_048_576


class Judgement(Enum):
    """VALID: an output of a valid step. EARLY: the step that the record names may still come. FOREIGN: neither."""

    VALID = 1
    EARLY = 2
    FOREIGN = 3


class Outputs:
    """Expected outputs in some topics; ``chains`` are the shards' chains, which the caller advances.

    ``awaited`` maps ids of expected outputs to their marks; ``early`` has the records that precede their
    steps, in order.
    """

    def __init__(self, topic_names: tuple[str, ...], chains: dict[int, Chain]) -> None:
        self._initials = frozenset(name[0] for name in topic_names)
        self._chains = chains
        self.awaited: dict[str, str] = {}
        self.early: list[StoredRecord] = []
        self._early_bytes = 0
        self._named: Counter[tuple[int, int]] = Counter()

    def expect(self, shard: int) -> list[str]:
        """Expect the outputs of the shard's last valid step, in this object's topics only; return their ids."""
        chain = self._chains[shard]
        start = f"{shard}-{chain.term}-{chain.number}-"
        result: list[str] = []
        for at in range(0, len(chain.declared), MARK_CHARS):
            if chain.declared[at] in self._initials:
                output = f"{start}{at // MARK_CHARS + 1}"
                self.awaited[output] = chain.declared[at : at + MARK_CHARS]
                result.append(output)
        return result

    def judge(self, record: StoredRecord) -> Judgement:
        """Judge the next record. An expected output is then removed from ``awaited``, so its repetition is FOREIGN."""
        output = record.headers.get("ce_id", "")
        mark = self.awaited.get(output)
        if mark is not None:
            if mark != mark_of(record):
                return Judgement.FOREIGN
            del self.awaited[output]
            return Judgement.VALID
        try:
            shard, term, number = ids.step_of(output)
        except ValueError:
            return Judgement.FOREIGN
        chain = self._chains.get(shard)
        if chain is None:
            return Judgement.FOREIGN
        # The step may still come: numbers and terms of valid steps never decrease.
        if number > chain.number and term >= chain.term:
            return Judgement.EARLY
        return Judgement.VALID if chain.is_undeclared_output(output) else Judgement.FOREIGN

    def keep(self, record: StoredRecord) -> list[StoredRecord]:
        """Keep an early record; return the early records that are dropped to limit their number and size."""
        self.early.append(record)
        self._named[_step_of(record)] += 1
        self._early_bytes += len(record.value)
        dropped: list[StoredRecord] = []
        while len(self.early) > EARLY_MAX or self._early_bytes > EARLY_BYTES_MAX:
            oldest = self.early.pop(0)
            dropped.append(oldest)
            self._early_bytes -= len(oldest.value)
            self._forget(oldest)
        return dropped

    def take_early(self, shard: int) -> list[StoredRecord]:
        """Remove and return the early records that name the shard's last valid step, to be judged again."""
        step = (shard, self._chains[shard].number)
        if step not in self._named:
            return []
        del self._named[step]
        result = [record for record in self.early if _step_of(record) == step]
        self.early = [record for record in self.early if _step_of(record) != step]
        self._early_bytes -= sum(len(record.value) for record in result)
        return result

    def _forget(self, record: StoredRecord) -> None:
        step = _step_of(record)
        self._named[step] -= 1
        if not self._named[step]:
            del self._named[step]


def _step_of(record: StoredRecord) -> tuple[int, int]:
    shard, _term, number = ids.step_of(record.headers["ce_id"])
    return shard, number
