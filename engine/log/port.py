"""What the engine asks of a log, whichever it is.

Partitions hold records in the order of their offsets, which grow, and may leave some out. ``number`` puts the records
of all partitions into the one order of views. One contract suite (``tests/contracts``) runs against each log.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from events.records import Record, StoredRecord

Ends = Mapping[tuple[str, int], int]
"""The next offset of each partition, by topic and partition; a partition that is absent is empty."""


class LogError(Exception):
    """What a log can't do; the message says what to do next."""


class LogCorruptedError(LogError):
    """A record is not what was appended."""


class LogCutError(LogError):
    """What stood there is not kept any more: somebody has cut the log behind it."""


class LogLockedError(LogError):
    """Another process holds the log."""


class OwnershipLostError(LogError):
    """Somebody else owns ``shards`` now; what this process wrote since has no effect."""

    def __init__(self, shards: Sequence[int]) -> None:
        super().__init__(f"somebody else owns {len(shards)} of the shards now: {', '.join(map(str, shards))}")
        self.shards = tuple(shards)


class OutcomeUnknownError(LogError):
    """An append may or may not have happened; whoever asked must read back before going on."""


def behind(batch: Sequence[StoredRecord], end: int) -> int:
    """Return the offset at which reading up to ``end`` goes on after a batch.

    A batch without records means that only brokers' marks are left before ``end``.
    """
    return batch[-1].offset + 1 if batch else end


class Log(Protocol):
    """An append-only log of records in partitions, as far as a process follows it."""

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """Append records over any topics; they are durable when it returns.

        Consecutive records of one key are appended all or none. Raises OutcomeUnknownError where some of the records
        may not have been appended; a log in one file appends all of them or none.
        """
        ...

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """At most ``limit`` records of a partition from offset ``start`` on, in order.

        Offsets have gaps, so there may be none although the partition ends further on (see ``behind``).
        Raises LogCutError where what stood at ``start`` is not kept.
        """
        ...

    def ends(self) -> Ends:
        """Where each partition ends now, as far as this process knows."""
        ...

    async def level(self) -> None:
        """Returns when ``ends`` knows whatever was appended, by anyone, before the call."""
        ...

    def moves(self) -> int:
        """A count that grows with each record that this process comes to know."""
        ...

    async def wait(self, after: int) -> None:
        """Returns as soon as ``moves`` is above ``after``."""
        ...

    async def aclose(self) -> None:
        """Gives the log up; what was appended stays."""
        ...


class NumberedLog(Log, Protocol):
    """A log whose records also stand in the one order of views; ``moves`` is the number of the newest one."""

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """At most ``limit`` records of all partitions whose number is above ``after``, in order.

        Raises LogCutError where the first of them is not kept.
        """
        ...

    def last_number(self) -> int:
        """The number of the newest record that this process knows; 0 while there is none."""
        ...

    async def newest(self) -> int:
        """The number of the newest record that anyone knew when this was called."""
        ...


class Owner(Protocol):
    """The right to write the steps of shards (design section 5)."""

    async def own(self, shards: Iterable[int]) -> None:
        """Ends whoever owned them; what he committed can be read when it returns.

        Raises LogError where that failed; then none of them is owned.
        """
        ...

    def begin(self, shard: int, number: int, term: int, digest: str) -> None:
        """Says which step of a shard was the last one that was read; whatever follows it is to be ours."""
        ...

    async def commit(self, steps: Sequence[tuple[int, Sequence[Record]]]) -> dict[int, int]:
        """Appends steps, each all or nothing; gives by shard the offset at which its step stands.

        Raises OwnershipLostError, or OutcomeUnknownError where it can't tell what was appended.
        """
        ...

    async def check(self) -> None:
        """Raises OwnershipLostError where a step that somebody else took counts."""
        ...

    async def release(self, shards: Iterable[int]) -> None:
        """Gives shards up."""
        ...
