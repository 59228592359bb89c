"""Which records outside of decisions are outputs of a step that counted: those that the step declares, each once.

A pure fold, the same for all readers of such a topic. It takes the steps of all shards, and each record that names a
step. A record may come before its step, in logs that were numbered so; it is early then, and judged again once the step
has come.
"""

from enum import Enum
from typing import Final

from events import ids
from events.chain import MARK_CHARS, Chain, mark_of
from events.records import StoredRecord

EARLY_MAX: Final = 4_096
"""So many records wait for their steps at most; the oldest are given up, since anyone may name a step to come."""

EARLY_BYTES_MAX: Final = 16 * 1_048_576


class Judgement(Enum):
    """What a record is that passes for an output."""

    COUNTS = 1
    EARLY = 2
    FOREIGN = 3


class Outputs:
    """The outputs that are awaited in some topics; ``chains`` are the shards' own, which somebody else moves on.

    ``awaited`` are marks by the ids of outputs, ``early`` the records that came before their steps, in their order.
    """

    def __init__(self, topic_names: tuple[str, ...], chains: dict[int, Chain]) -> None:
        self._initials = frozenset(name[0] for name in topic_names)
        self._chains = chains
        self.awaited: dict[str, str] = {}
        self.early: list[StoredRecord] = []
        self._early_bytes = 0
        self._named: set[tuple[int, int]] = set()

    def declare(self, shard: int) -> list[str]:
        """Takes in the step that counted last in a shard; gives the ids of its outputs in these topics."""
        chain = self._chains[shard]
        start = f"{shard}-{chain.term}-{chain.number}-"
        found: list[str] = []
        for at in range(0, len(chain.declared), MARK_CHARS):
            if chain.declared[at] in self._initials:
                output = f"{start}{at // MARK_CHARS + 1}"
                self.awaited[output] = chain.declared[at : at + MARK_CHARS]
                found.append(output)
        return found

    def judge(self, record: StoredRecord) -> Judgement:
        """What the next record is; one that counts is not awaited any more."""
        output = record.headers.get("ce_id", "")
        mark = self.awaited.get(output)
        if mark is not None:
            if mark != mark_of(record):
                return Judgement.FOREIGN
            del self.awaited[output]
            return Judgement.COUNTS
        try:
            shard, term, number = ids.step_of(output)
        except ValueError:
            return Judgement.FOREIGN
        chain = self._chains.get(shard)
        if chain is None:
            return Judgement.FOREIGN
        if number > chain.number and term >= chain.term:
            return Judgement.EARLY
        return Judgement.COUNTS if chain.gave(output) else Judgement.FOREIGN

    def keep(self, record: StoredRecord) -> list[StoredRecord]:
        """Keeps an early record; gives those that are given up for it."""
        self.early.append(record)
        self._named.add(_step_of(record))
        self._early_bytes += len(record.value)
        gone: list[StoredRecord] = []
        while len(self.early) > EARLY_MAX or self._early_bytes > EARLY_BYTES_MAX:
            gone.append(self.early.pop(0))
            self._early_bytes -= len(gone[-1].value)
        return gone

    def due(self, shard: int) -> list[StoredRecord]:
        """Gives the early records that name the step that counted last in a shard; they are to be judged again."""
        step = (shard, self._chains[shard].number)
        if step not in self._named:
            return []
        self._named.discard(step)
        found = [each for each in self.early if _step_of(each) == step]
        self.early = [each for each in self.early if _step_of(each) != step]
        self._early_bytes -= sum(len(each.value) for each in found)
        return found


def _step_of(record: StoredRecord) -> tuple[int, int]:
    shard, _term, number = ids.step_of(record.headers["ce_id"])
    return shard, number
