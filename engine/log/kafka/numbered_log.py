"""The log of API replicas and views: all partitions in the order of the sequence.

Any replica may extend the sequence. Normally the replica that extended it last continues. If that replica stops,
another one takes over after 0.1 to 0.2 seconds, so records wait little longer than that for their numbers.
"""

import asyncio
import contextlib
import itertools
import random
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Final

import anyio
from aiokafka.errors import KafkaError
from msgspec import structs

from engine import diagnostics, shared_waits
from engine.log import port
from engine.log.kafka import causal_order, clients, extents, partition_followers, sequence
from engine.log.kafka.address import Address
from engine.log.kafka.clients import Slot
from events.records import Record, StoredRecord

_PACE_S: Final = 0.004
"""Seconds for which new records are gathered before they get numbers."""

_SILENCE_S: Final = 0.1
"""Seconds that other replicas wait before one extends the sequence instead of the replica that did so last."""

_STALLED_S: Final = 0.02
"""Seconds between two checks for newly visible causes, while all unnumbered records wait for causes."""

_UNSEEN_S: Final = 0.05
"""Seconds to wait for records that extents name and that have not arrived, before checking whether they exist."""

_REFUSED_WITHIN: Final = 64
"""A record of the topic ``sequence`` can refuse extents at most this many offsets before it; older ones stay valid."""

_UNNUMBERED_S: Final = 5.0
"""Seconds that a replica which does not extend the sequence waits for another one to do so."""

_READ: Final = 2_000
_EXTENTS_PER_WRITE: Final = 8_192
"""When so many extents are only in memory, ``_advance`` writes them to the replica's extent file."""

_ID_BYTES: Final = 6
_log = diagnostics.logger(__name__)


class KafkaLog:
    """A ``port.NumberedLog`` over all partitions; ``open`` it, then run ``run`` in a task.

    Without ``extends`` it only follows the sequence. With a directory it stores the applied part of the
    sequence there and continues from it after a restart.
    """

    def __init__(self, address: Address, *, extends: bool = True, directory: Path | None = None) -> None:
        self._address = address
        self._followed = partition_followers.FollowedLog(address)
        self._extends = extends
        self._replica_id = secrets.token_hex(_ID_BYTES)
        self._path = None if directory is None else directory / extents.FILE
        self._extent_file: extents.ExtentFile | None = None
        self._sequence = sequence.Sequence()
        self._is_putting = False
        # Unapplied records of the topic ``sequence``. ``_refused`` maps the offset of each refused record to the number
        # ``first`` in the record that refuses it.
        self._waiting: deque[sequence.Pending] = deque()
        self._fetched = 0
        self._refused: dict[int, int] = {}
        self._refusing: tuple[int, ...] = ()
        self._visible: dict[Slot, int] = {}
        self._read = 0
        self._record = b""
        self._appends = 0
        self._ordering = causal_order.Ordering(self._followed)
        self._end = shared_waits.EndSignal()
        self._shared_ends = shared_waits.SharedRequest(lambda: self._followed.query_ends(sequence.SLOT))
        self._newest_s = clients.chosen_ms(clients.REQUEST_VARIABLE, clients.REQUEST_MS) / 1_000
        self._moved = asyncio.Event()

    async def open(self) -> None:
        """Connect and read the sequence. Raises LogError if no broker answers; call ``aclose`` even then."""
        await self._followed.open()
        await self._followed.follow([*sequence.SLOTS, sequence.SLOT])
        await self._resume()
        await self._advance()
        # Another replica may have left records without numbers; do not wait for new records before extending.
        self._moved.set()

    async def run(self) -> None:
        """Follow the log until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._followed.run())
            tasks.create_task(self._keep_level())
            if self._extends:
                tasks.create_task(self._extend())

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """Append records; return when they have numbers."""
        stored = await self._followed.append(batch)
        for record in stored:
            slot = (record.topic, record.partition)
            while self._visible.get(slot, 0) <= record.offset:
                await self._end.wait(self._end.number)
        return [self._with_number(record) for record in stored]

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """Read numbered records; raises LogError if the brokers do not answer."""
        end = self._visible.get((topic, partition), 0)
        batch = await self._followed.read(topic, partition, start, limit)
        return [self._with_number(record) for record in batch if record.offset < end]

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """Read records of all partitions in number order; raises LogError if the brokers do not answer."""
        stretches = itertools.takewhile(
            lambda stretch: stretch.first <= self._end.number, self._sequence.after(after)
        )
        return await sequence.records_of(stretches, self._followed.read, limit)

    def ends(self) -> port.Ends:
        return self._visible

    async def wait_current(self) -> None:
        """Return when everything appended before the call has numbers and is visible here.

        Raises UnnumberedError if this replica does not extend the sequence and no other one does.
        """
        await self._followed.wait_current()
        ends = self._followed_ends()
        try:
            async with asyncio.timeout(None if self._extends else _UNNUMBERED_S):
                while any(self._visible.get(slot, 0) < end for slot, end in ends.items()):
                    await self._end.wait(self._end.number)
        except TimeoutError:
            count = self.sequence_counts().unnumbered
            raise port.UnnumberedError(f"{count} records have no numbers; start an API replica") from None

    def change_count(self) -> int:
        return self._end.number

    def sequence_counts(self) -> sequence.Counts:
        """Return the counts of the sequence as far as this replica knows them."""
        unnumbered = sum(
            max(end - self._sequence.end(slot), 0) for slot, end in self._followed_ends().items()
        )
        return sequence.Counts(self._sequence.next - 1, len(self._sequence), unnumbered, self._appends)

    def last_number(self) -> int:
        return self._end.number

    async def newest(self) -> int:
        """Return the last number of the sequence on the brokers; every acknowledged write has a number up to it.

        Raises LogError if the brokers do not answer within REBALLAST_REQUEST_MS.
        """
        try:
            async with asyncio.timeout(self._newest_s):
                return await self.catch_up()
        except TimeoutError:
            reason = f"the brokers did not report the end of the log within {self._newest_s:g} s"
            raise port.LogError(reason) from None

    async def catch_up(self) -> int:
        """Apply the sequence up to its end and return its last number; wait for the brokers without a time limit."""
        await self._followed.wait_until_read(await self._shared_ends.answer())
        await self._advance()
        end = self._fetched
        while self._read < end:
            await self._end.wait_for_move()
        return self._end.number

    async def wait(self, after: int) -> None:
        await self._end.wait(after)

    async def aclose(self) -> None:
        """Close the log, also if ``open`` failed; ``run`` must have ended."""
        await self._flush_extents()
        await self._followed.aclose()
        if self._extent_file is not None:
            await asyncio.to_thread(self._extent_file.close)

    def _with_number(self, record: StoredRecord) -> StoredRecord:
        number = self._sequence.number((record.topic, record.partition), record.offset)
        return structs.replace(record, number=number)

    async def _keep_level(self) -> None:
        change_count = 0
        while True:
            with anyio.move_on_after(_UNSEEN_S if self._waiting else None):
                await self._followed.wait(change_count)
            change_count = self._followed.change_count()
            try:
                await self._advance()
                await self._refuse()
            except port.LogError as error:
                _log.warning("sequence not read; retrying", error=str(error))
                await asyncio.sleep(clients.AFTER_FAILURE_S)
            self._moved.set()

    async def _advance(self) -> None:
        """Apply new records of the sequence; stop at extents that number records which have not been received yet."""
        while batch := await self._followed.read(*sequence.SLOT, self._fetched, _READ):
            # Another task has read these records during the await, but perhaps not all that follow them.
            if batch[0].offset < self._fetched:
                continue
            self._fetched = batch[-1].offset + 1
            for record in batch:
                extents_read = sequence.read(record)
                self._waiting.append(sequence.Pending(record.offset, record.value, extents_read))
                self._note_refused(record.offset, extents_read)
            # Do not apply the last records yet: a refusal follows the extents that it refuses.
            self._take(_REFUSED_WITHIN)
            if self._sequence.unwritten_count() >= _EXTENTS_PER_WRITE:
                await self._flush_extents()
        self._take(0)

    def _note_refused(self, at: int, refusing: sequence.Extents | None) -> None:
        """Add to ``_refused`` the unapplied records of the sequence that the record at offset ``at`` refuses."""
        for offset in () if refusing is None else refusing.refused:
            if refusing is not None and max(self._read, at - _REFUSED_WITHIN) <= offset < at:
                self._refused.setdefault(offset, refusing.first)

    def _take(self, left: int) -> None:
        """Apply all waiting records except the last ``left``; stop at extents whose records have not all arrived."""
        number, read = self._end.number, self._read
        while len(self._waiting) > left:
            pending = self._waiting[0]
            current = pending.extents
            is_refused = current is not None and self._refused.get(pending.offset) == current.first
            if current is not None and not is_refused and self._sequence.continues(current):
                if any(
                    self._followed.known_end((extent.topic, extent.partition)) < extent.end
                    for extent in current.extents
                ):
                    break
                self._sequence.take(current)
                for extent in current.extents:
                    self._visible[extent.topic, extent.partition] = extent.end
                number = current.last
            self._remove_first()
        if self._read > read:
            self._end.move(number)

    def _remove_first(self) -> None:
        """Remove the first waiting record and advance the position in the topic past it."""
        pending = self._waiting.popleft()
        self._refused.pop(pending.offset, None)
        self._read, self._record = pending.offset + 1, pending.record

    async def _refuse(self) -> None:
        """Skip the first waiting extents if they are forged, that is, if they name offsets that do not exist."""
        if not self._waiting or self._waiting[0].extents is None:
            return
        pending, forged = self._waiting[0], self._waiting[0].extents
        slots = sorted({(extent.topic, extent.partition) for extent in forged.extents} & set(sequence.SLOTS))
        written = await self._followed.written(slots)
        # Another task has applied or skipped these extents during the await.
        if not self._waiting or self._waiting[0] is not pending:
            return
        if any(written.get((extent.topic, extent.partition), 0) < extent.end for extent in forged.extents):
            _log.warning("extent ignored: its offsets do not exist", offset=pending.offset)
            self._refusing = (*self._refusing, pending.offset)[-_REFUSED_WITHIN:]
            self._remove_first()
            self._end.move(self._end.number)
            await self._advance()

    async def _resume(self) -> None:
        """Continue from the stored sequence if it belongs to this log."""
        try:
            extent_file = self._extent_file = await asyncio.to_thread(extents.ExtentFile, self._path)
            if extent_file.state.read and not await self._is_of_this_log(extent_file.state):
                _log.warning("sequence file belongs to another log; rebuilding it", file=str(self._path))
                await asyncio.to_thread(extent_file.clear)
        except extents.UnwritableError as error:
            self._extent_file = None
            _log.warning("sequence file unusable; keeping the sequence in memory", error=str(error))
            return
        state = extent_file.state
        self._sequence = await asyncio.to_thread(sequence.Sequence, extent_file)
        self._read, self._record = state.read, state.record
        self._fetched = state.read
        self._visible.update(state.slots)
        self._end.move(state.next - 1)

    async def _is_of_this_log(self, state: extents.State) -> bool:
        if any(self._followed.known_end(slot) < end for slot, end in state.slots):
            return False
        batch = await self._followed.read(*sequence.SLOT, state.read - 1, 1)
        return [(record.offset, record.value) for record in batch] == [(state.read - 1, state.record)]

    async def _flush_extents(self) -> None:
        """Write the extents that are only in memory to the file."""
        if self._extent_file is not None and not self._is_putting and self._sequence.unwritten_count():
            self._is_putting = True
            # Shielded: cancellation does not stop the thread, and writing the same extents a second time would fail.
            await asyncio.shield(asyncio.create_task(self._write_extents(self._extent_file)))

    async def _write_extents(self, extent_file: extents.ExtentFile) -> None:
        try:
            # The sequence may grow while the thread writes; only these rows count as stored afterwards.
            state, rows = self._sequence.put(self._read, self._record)
            await asyncio.to_thread(extent_file.put, state, rows)
            self._sequence.mark_written(len(rows))
        except extents.UnwritableError as error:
            # The file is only a cache: continue with the extents in memory and write them with later extents.
            _log.warning("sequence not saved", error=str(error))
        finally:
            self._is_putting = False

    async def _extend(self) -> None:
        """Assign numbers to records that have none."""
        while True:
            await self._moved.wait()
            self._moved.clear()
            if not self._is_unnumbered():
                continue
            # A random delay, so that replicas do not extend at the same time; no order of records depends on it.
            silence_s = _SILENCE_S * (1 + random.random())  # noqa: S311
            await asyncio.sleep(_PACE_S if self._sequence.by == self._replica_id else silence_s)
            try:
                if not await self._append_extents():
                    # Causes may become visible without a new record; check again soon.
                    with anyio.move_on_after(_STALLED_S):
                        await self._moved.wait()
                if self._is_unnumbered():
                    self._moved.set()
            except (KafkaError, port.LogError) as error:
                _log.warning("sequence not extended; retrying", error=str(error))
                await asyncio.sleep(clients.AFTER_FAILURE_S)
                self._moved.set()

    def _is_unnumbered(self) -> bool:
        return any(end > self._sequence.end(slot) for slot, end in self._followed_ends().items())

    def _followed_ends(self) -> dict[Slot, int]:
        """Return the known ends of the partitions that get numbers."""
        return {slot: end for slot, end in self._followed.ends().items() if slot != sequence.SLOT}

    async def _append_extents(self) -> bool:
        """Append extents for all records that can be numbered now; return False if nothing can be appended yet."""
        await self._advance()
        planned = await self._ordering.plan(self._sequence.end)
        ends, refused = [(stretch.slot, stretch.end) for stretch in planned], self._refusing
        appended = sequence.extents(self._sequence, self._replica_id, ends, refused)
        # Unless refused, extents that were read but not applied precede new ones, which would then have no effect.
        if not appended.extents or self._waiting:
            return False
        (stored,) = await self._followed.append([sequence.record(appended)])
        # Clear the refusals only after the append: if it failed, the next append would have to contain them again.
        self._refusing = tuple(offset for offset in self._refusing if offset not in refused)
        self._appends += 1
        await self._until_read(stored.offset)
        return True

    async def _until_read(self, offset: int) -> None:
        """Return when the record of the sequence at an offset was applied."""
        while True:
            change_count = self._followed.change_count()
            await self._advance()
            if self._read > offset:
                return
            await self._followed.wait(change_count)


@contextlib.asynccontextmanager
async def opened(
    at: Address, *, extends: bool = True, directory: Path | None = None
) -> AsyncGenerator[KafkaLog]:
    """Return a log that is open and runs until the block ends."""
    log = KafkaLog(at, extends=extends, directory=directory)
    try:
        await log.open()
        running = asyncio.create_task(log.run())
        try:
            yield log
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    finally:
        await log.aclose()


@contextlib.asynccontextmanager
async def reading(at: Address) -> AsyncGenerator[KafkaLog]:
    """Open a read-only log that has caught up when the block begins."""
    async with opened(at, extends=False) as log:
        await log.catch_up()
        yield log
