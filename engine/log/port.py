"""The log interface, independent of the backend.

The records of a partition are ordered by offset; offsets grow and may have gaps. The sequence number (``number``)
orders the records of all partitions for projections. One contract suite (``tests/contracts``) runs against each
backend.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from events.records import Record, StoredRecord

Ends = Mapping[tuple[str, int], int]
"""The next offset of each partition, by topic and partition; a missing partition is empty."""


READ_RECORDS: Final = 1_000
"""Records per read of a long part of a log."""

READ_BYTES_MAX: Final = 16 * 1024 * 1024
"""Total bytes of record values after which a read ends, so that large records cannot exhaust the memory."""


AFTER_FAILURE_S: Final = 1.0
"""Seconds to pause after a failure of the log or of the views, before the next attempt."""


class LogError(Exception):
    """A failure of the log; the message contains a remedy."""


class LogCorruptedError(LogError):
    """A stored record is damaged: its checksum differs or it cannot be read."""


class LogCutError(LogError):
    """The records at the requested position have been deleted from the log."""


class LogLockedError(LogError):
    """Another process has locked the log."""


class LogMixedError(LogError):
    """The log of a control plane's own objects is opened for observations of another control plane, or vice versa."""


class OwnershipLostError(LogError):
    """Another process owns ``shards`` now; what this process has written since has no effect."""

    def __init__(self, shards: Sequence[int]) -> None:
        super().__init__(
            f"another process owns {len(shards)} of the shards now: {', '.join(map(str, shards))}"
        )
        self.shards = tuple(shards)


class UnnumberedError(LogError):
    """Appended records have no sequence numbers, and no process that assigns the numbers is running."""


class OutcomeUnknownError(LogError):
    """An append has an unknown outcome; read the log to determine it before continuing."""


def offset_after(batch: Sequence[StoredRecord], end: int) -> int:
    """Return the offset after a batch, from which to continue reading up to ``end``.

    An empty batch means that only control records of the brokers are left before ``end``.
    """
    return batch[-1].offset + 1 if batch else end


def bounded(batch: list[StoredRecord]) -> list[StoredRecord]:
    """Return the first records of a batch: as many as it takes to reach ``READ_BYTES_MAX`` bytes of values, or all."""
    size = 0
    for count, record in enumerate(batch, 1):
        size += len(record.value)
        if size >= READ_BYTES_MAX:
            return batch[:count]
    return batch


class Partitions(Protocol):
    """Read access to the records of partitions."""

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """Return at most ``limit`` records of a partition from offset ``start`` on, in order.

        If their values exceed about ``READ_BYTES_MAX``, fewer records are returned, but at least one. Offsets have
        gaps, so the result may be empty even before the end of the partition (see ``offset_after``). Raises LogCutError
        if the records at ``start`` have been deleted.
        """
        ...


class Log(Partitions, Protocol):
    """An append-only log of records in partitions; a process may follow only some of them."""

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """Append records to any topics; they are durable when it returns.

        Consecutive records of one key are appended atomically. Raises OutcomeUnknownError if some of the
        records may not have been appended; the SQLite log appends all of them or none.
        """
        ...

    def ends(self) -> Ends:
        """Return the end of each partition as far as this process knows."""
        ...

    async def wait_current(self) -> None:
        """Return when ``ends`` covers everything that any process appended before the call.

        Raises UnnumberedError if this process assigns no numbers and no other process does so in time.
        """
        ...

    def change_count(self) -> int:
        """Return a counter that grows with each record that becomes visible to this process."""
        ...

    async def wait(self, after: int) -> None:
        """Return as soon as ``change_count()`` is above ``after``."""
        ...

    async def aclose(self) -> None:
        """Close the log; appended records stay."""
        ...


class NumberedLog(Log, Protocol):
    """A log whose records are also numbered in one order; ``change_count`` returns the number of the newest record."""

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """Return at most ``limit`` records of all partitions with a number above ``after``, in order.

        Fewer are returned if they are large, as by ``read``. Raises LogCutError if the first of them has been deleted.
        """
        ...

    def last_number(self) -> int:
        """Return the sequence number of the newest record that this process knows; 0 if there is none."""
        ...

    async def newest(self) -> int:
        """Return the sequence number of the newest record known to any process at the time of the call."""
        ...


class Owner(Protocol):
    """The right to write the steps of shards."""

    async def own(self, shards: Iterable[int]) -> None:
        """Take over the shards and fence their former owners; when it returns, all their committed steps can be read.

        Raises LogError on failure; then none of the shards is owned.
        """
        ...

    def begin(self, shard: int, number: int, term: int, digest: str) -> None:
        """Set the last step that the caller has read of a shard; the shard's next step must follow it."""
        ...

    async def commit(self, steps: Sequence[tuple[int, Sequence[Record]]]) -> dict[int, int]:
        """Append steps, each atomically; return the offset of each step by shard.

        Raises OwnershipLostError, or OutcomeUnknownError if it is unknown what was appended.
        """
        ...

    async def check(self) -> None:
        """Raise OwnershipLostError if a step of another owner continues the chain of an owned shard.

        On Kafka it also makes committed records visible that a broker has left hidden.
        """
        ...

    def check_due_ms(self) -> int | None:
        """Return the time at which ``check`` must run even if nothing else happens; None for never."""
        ...

    async def release(self, shards: Iterable[int]) -> None:
        """Release shards; another owner may take them."""
        ...
