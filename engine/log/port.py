"""What the engine asks of a log, whichever it is.

Partitions hold records in the order of their offsets, from 0 without gaps. ``number`` puts the records of all
partitions into the one order of views. One contract suite (``tests/contracts``) runs against each log.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from events.records import Record, StoredRecord

Ends = Mapping[tuple[str, int], int]
"""The next offset of each partition, by topic and partition; a partition that is absent is empty."""


class LogError(Exception):
    """What a log can't do; the message says what to do next."""


class LogCorruptedError(LogError):
    """A record is not what was appended."""


class LogLockedError(LogError):
    """Another process holds the log."""


class OutcomeUnknownError(LogError):
    """An append may or may not have happened; whoever asked must read back before going on."""


class Log(Protocol):
    """An append-only log of records in partitions."""

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """Appends all records, over any topics, or none; durable when it returns.

        Raises OutcomeUnknownError where it can't tell whether they were appended.
        """
        ...

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """At most ``limit`` records of a partition from offset ``start`` on, in order."""
        ...

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """At most ``limit`` records of all partitions whose number is above ``after``, in order."""
        ...

    def ends(self) -> Ends:
        """Where each partition ends now."""
        ...

    def last_number(self) -> int:
        """The number of the newest record; 0 while there is none."""
        ...

    async def wait(self, after: int) -> None:
        """Returns as soon as there is a record whose number is above ``after``."""
        ...

    async def aclose(self) -> None:
        """Gives the log up; what was appended stays."""
        ...
