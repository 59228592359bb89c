"""The log of API replicas and views: all partitions, in the order of the sequence.

Any replica may extend the sequence; in quiet agreement the one does that did it last, and the others only when it falls
silent. Whoever waits for a number of its own waits for that at most.
"""

# The library has annotations, but does not say so to type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import contextlib
import random
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Final

from aiokafka.errors import KafkaError
from msgspec import Struct

from engine import diagnostics
from engine.log import following as ends_of
from engine.log import port
from engine.log.kafka import clients, coalescing, extents, following, ordering, sequence
from engine.log.kafka.address import Address
from engine.log.kafka.clients import Slot
from events import records
from events.records import Record, StoredRecord

_PACE_S: Final = 0.004
"""How long what is new is gathered before it gets its numbers."""

_SILENCE_S: Final = 0.1
"""How long the others wait for the replica that extended the sequence last."""

_STALLED_S: Final = 0.02
"""How often it is looked whether a cause has become visible, while nothing else gets a number."""

_UNSEEN_S: Final = 0.05
"""When it is asked whether offsets exist that the sequence names and this replica has not."""

_REFUSED_WITHIN: Final = 64
"""Extents are refused by one of the so many records behind them, or not at all."""

_AFTER_FAILURE_S: Final = 0.5
_READ: Final = 2_000
_PUT_AWAY: Final = 8_192
"""So many stretches of the sequence are put on the shelf at once."""

_ID_BYTES: Final = 6
_log = diagnostics.logger(__name__)


class SequenceCounts(Struct, frozen=True):
    """Numbers and extents of the sequence, offsets that have no number yet, and how often this log extended it."""

    numbers: int
    extents: int
    unnumbered: int
    appends: int


class KafkaLog:
    """A ``port.NumberedLog`` over all partitions; ``open`` one, and run ``run`` beside it.

    One that does not ``extend`` the sequence follows what others make of it. In a directory it keeps what it has taken
    in of the sequence, and goes on from there the next time.
    """

    def __init__(self, address: Address, *, extends: bool = True, directory: Path | None = None) -> None:
        self._address = address
        self._followed = following.FollowedLog(address)
        self._extends = extends
        self._by = secrets.token_hex(_ID_BYTES)
        self._path = None if directory is None else directory / extents.FILE
        self._shelf: extents.Shelf | None = None
        self._sequence = sequence.Sequence()
        self._is_putting = False
        # What was read of the sequence, and not yet taken in; and what of it others refused, with its first number.
        self._waiting: deque[sequence.Pending] = deque()
        self._fetched = 0
        self._refused: dict[int, int] = {}
        self._refusing: tuple[int, ...] = ()
        self._visible: dict[Slot, int] = {}
        self._read = 0
        self._record = b""
        self._appends = 0
        self._ordering = ordering.Ordering(self._followed)
        self._end = ends_of.EndSignal()
        self._asked_ends = coalescing.Coalesced(lambda: self._followed.ask(sequence.SLOT))
        self._newest_s = clients.chosen_ms(clients.REQUEST_VARIABLE, clients.REQUEST_MS) / 1_000
        self._moved = asyncio.Event()

    async def open(self) -> None:
        """Connects, and reads the sequence. Raises LogError where no broker answers."""
        await self._followed.open()
        await self._followed.follow([*sequence.SLOTS, sequence.SLOT])
        await self._resume()
        await self._advance()
        # What another replica left without numbers waits for nothing new to come.
        self._moved.set()

    async def run(self) -> None:
        """Keeps level with the log until it is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._followed.run())
            tasks.create_task(self._keep_level())
            if self._extends:
                tasks.create_task(self._extend())

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """See ``port.Log``; returns when the records have their numbers."""
        stored = await self._followed.append(batch)
        for record in stored:
            slot = (record.topic, record.partition)
            while self._visible.get(slot, 0) <= record.offset:
                await self._end.wait(self._end.number)
        return [self._with_number(record) for record in stored]

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """See ``port.Log``; raises LogError where the brokers don't answer."""
        end = self._visible.get((topic, partition), 0)
        found = await self._followed.read(topic, partition, start, limit)
        return [self._with_number(record) for record in found if record.offset < end]

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """See ``port.NumberedLog``; raises LogError where the brokers don't answer."""
        found: list[StoredRecord] = []
        for stretch in self._sequence.after(after):
            if stretch.first > self._end.number or len(found) >= limit:
                break
            found += await self._stretch(stretch, limit - len(found))
        return found

    async def _stretch(self, stretch: sequence.Numbered, limit: int) -> list[StoredRecord]:
        """At most ``limit`` records of a stretch."""
        found: list[StoredRecord] = []
        start = stretch.start
        while start < stretch.end and len(found) < limit:
            wanted = min(limit - len(found), stretch.end - start)
            batch = await self._followed.read(*stretch.slot, start, wanted)
            mine = [record for record in batch if record.offset < stretch.end]
            if not mine:
                break
            found += [
                records.renumbered(record, stretch.first + record.offset - stretch.start) for record in mine
            ]
            start = mine[-1].offset + 1
        return found

    def ends(self) -> port.Ends:
        """See ``port.Log``."""
        return self._visible

    async def level(self) -> None:
        """See ``port.Log``."""
        await self._followed.level()
        wanted = self._followed_ends()
        while any(self._visible.get(slot, 0) < end for slot, end in wanted.items()):
            await self._end.wait(self._end.number)

    def moves(self) -> int:
        """See ``port.Log``."""
        return self._end.number

    def sequence_counts(self) -> SequenceCounts:
        """How the sequence stands, as far as this replica knows."""
        unnumbered = sum(
            max(end - self._sequence.end(slot), 0) for slot, end in self._followed_ends().items()
        )
        return SequenceCounts(self._sequence.next - 1, len(self._sequence), unnumbered, self._appends)

    def last_number(self) -> int:
        """See ``port.NumberedLog``."""
        return self._end.number

    async def newest(self) -> int:
        """See ``port.NumberedLog``: what the sequence holds, which every answered write is part of."""
        try:
            async with asyncio.timeout(self._newest_s):
                return await self.catch_up()
        except TimeoutError:
            reason = f"where the log ends was not learnt from the brokers within {self._newest_s:g} s"
            raise port.LogError(reason) from None

    async def catch_up(self) -> int:
        """The same, however long it takes."""
        await self._followed.reach(await self._asked_ends.answer())
        await self._advance()
        end = self._fetched
        while self._read < end:
            await self._end.moved()
        return self._end.number

    async def wait(self, after: int) -> None:
        """See ``port.Log``."""
        await self._end.wait(after)

    async def aclose(self) -> None:
        """See ``port.Log``; whoever runs ``run`` has ended it before."""
        await self._put_away()
        await self._followed.aclose()
        if self._shelf is not None:
            await asyncio.to_thread(self._shelf.close)

    def _with_number(self, record: StoredRecord) -> StoredRecord:
        return records.renumbered(
            record, self._sequence.number((record.topic, record.partition), record.offset)
        )

    async def _keep_level(self) -> None:
        moves = 0
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_UNSEEN_S if self._waiting else None):
                    await self._followed.wait(moves)
            moves = self._followed.moves()
            try:
                await self._advance()
                await self._refuse()
            except port.LogError as error:
                _log.warning("the sequence was not read on, trying again", error=str(error))
                await asyncio.sleep(_AFTER_FAILURE_S)
            self._moved.set()

    async def _advance(self) -> None:
        """Takes in what the sequence got, as far as this replica has what it numbers."""
        while batch := await self._followed.read(*sequence.SLOT, self._fetched, _READ):
            if batch[0].offset < self._fetched:
                break
            self._fetched = batch[-1].offset + 1
            for record in batch:
                found = sequence.read(record)
                self._waiting.append(sequence.Pending(record.offset, record.value, found))
                self._hear(record.offset, found)
            # Whether extents are refused stands behind them: the last ones wait for the next batch, if there is one.
            self._take(_REFUSED_WITHIN)
            if self._sequence.to_put() >= _PUT_AWAY:
                await self._put_away()
        self._take(0)

    def _hear(self, at: int, found: sequence.Extents | None) -> None:
        """Notes which extents, not taken in yet, were refused by those behind them."""
        for offset in () if found is None else found.refused:
            if found is not None and max(self._read, at - _REFUSED_WITHIN) <= offset < at:
                self._refused.setdefault(offset, found.first)

    def _take(self, left: int) -> None:
        """Takes in what waits, but for the last so many, up to extents that this replica has not seen the end of."""
        number, read = self._end.number, self._read
        while len(self._waiting) > left:
            pending = self._waiting[0]
            found = pending.extents
            is_refused = found is not None and self._refused.get(pending.offset) == found.first
            if found is not None and not is_refused and self._sequence.joins(found):
                if any(
                    self._followed.known((each.topic, each.partition)) < each.end for each in found.extents
                ):
                    break
                self._sequence.take(found)
                for each in found.extents:
                    self._visible[each.topic, each.partition] = each.end
                number = _last(found)
            self._pass()
        if self._read > read:
            self._end.move(number)

    def _pass(self) -> None:
        """Goes on behind the first that waits."""
        pending = self._waiting.popleft()
        self._refused.pop(pending.offset, None)
        self._read, self._record = pending.offset + 1, pending.record

    async def _refuse(self) -> None:
        """Passes over extents that name offsets which did not exist when they were read: a forgery."""
        if not self._waiting or self._waiting[0].extents is None:
            return
        pending, found = self._waiting[0], self._waiting[0].extents
        slots = sorted({(each.topic, each.partition) for each in found.extents} & set(sequence.SLOTS))
        written = await self._followed.written(slots)
        if not self._waiting or self._waiting[0] is not pending:
            return
        if any(written.get((each.topic, each.partition), 0) < each.end for each in found.extents):
            _log.warning(
                "extents that name offsets which do not exist are passed over", offset=pending.offset
            )
            self._refusing = (*self._refusing, pending.offset)[-_REFUSED_WITHIN:]
            self._pass()
            self._end.move(self._end.number)
            await self._advance()

    async def _resume(self) -> None:
        """Goes on from what was kept in the directory, where that is of this log."""
        try:
            shelf = self._shelf = await asyncio.to_thread(extents.Shelf, self._path)
            if shelf.state.read and not await self._is_of_this_log(shelf.state):
                _log.warning("the sequence on disk is another log's, reading it anew", file=str(self._path))
                await asyncio.to_thread(shelf.clear)
        except extents.UnwritableError as error:
            self._shelf = None
            _log.warning("the sequence is kept in memory only", reason=str(error))
            return
        state = shelf.state
        self._sequence = await asyncio.to_thread(sequence.Sequence, shelf)
        self._read, self._record = state.read, state.record
        self._fetched = state.read
        self._visible.update(state.slots)
        self._end.move(state.next - 1)

    async def _is_of_this_log(self, state: extents.State) -> bool:
        if any(self._followed.known(slot) < end for slot, end in state.slots):
            return False
        found = await self._followed.read(*sequence.SLOT, state.read - 1, 1)
        return [(each.offset, each.value) for each in found] == [(state.read - 1, state.record)]

    async def _put_away(self) -> None:
        """Puts on the shelf what memory has more of the sequence."""
        if self._shelf is None or self._is_putting or not self._sequence.to_put():
            return
        self._is_putting = True
        try:
            state, rows = self._sequence.put(self._read, self._record)
            await asyncio.to_thread(self._shelf.put, state, rows)
            self._sequence.was_put(len(rows))
        except extents.UnwritableError as error:
            # A cache that is not written stops nobody: memory has it, and the next time may be better.
            _log.warning("the sequence was not put away", reason=str(error))
        finally:
            self._is_putting = False

    async def _extend(self) -> None:
        """Gives numbers to what has none."""
        while True:
            await self._moved.wait()
            self._moved.clear()
            if not self._is_unnumbered():
                continue
            # Chance decides which of several replicas speaks first; it has no part in what is written.
            silence_s = _SILENCE_S * (1 + random.random())  # noqa: S311
            await asyncio.sleep(_PACE_S if self._sequence.by == self._by else silence_s)
            try:
                if not await self._append_extents():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_STALLED_S):
                            await self._moved.wait()
                if self._is_unnumbered():
                    self._moved.set()
            except (KafkaError, port.LogError) as error:
                _log.warning("the sequence was not extended, trying again", error=str(error))
                await asyncio.sleep(_AFTER_FAILURE_S)
                self._moved.set()

    def _is_unnumbered(self) -> bool:
        return any(end > self._sequence.end(slot) for slot, end in self._followed_ends().items())

    def _followed_ends(self) -> dict[Slot, int]:
        """Where the partitions end that get numbers, as far as this replica has read."""
        return {slot: end for slot, end in self._followed.ends().items() if slot != sequence.SLOT}

    async def _append_extents(self) -> bool:
        """Appends extents of what can be numbered now; False where all of it waits for its causes."""
        await self._advance()
        planned = await self._ordering.plan(self._sequence.end)
        ends = [(each.slot, each.end) for each in planned]
        found = sequence.extents(self._sequence, self._by, ends, self._refusing)
        if not found.extents or self._waiting:
            return False
        self._refusing = ()
        (stored,) = await self._followed.append([sequence.record(found)])
        self._appends += 1
        await self._until_read(stored.offset)
        return True

    async def _until_read(self, offset: int) -> None:
        """Returns when what the sequence has at an offset was taken in."""
        while True:
            moves = self._followed.moves()
            await self._advance()
            if self._read > offset:
                return
            await self._followed.wait(moves)


@contextlib.asynccontextmanager
async def opened(
    at: Address, *, extends: bool = True, directory: Path | None = None
) -> AsyncGenerator[KafkaLog]:
    """A log that keeps level until the block ends."""
    log = KafkaLog(at, extends=extends, directory=directory)
    await log.open()
    running = asyncio.create_task(log.run())
    try:
        yield log
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await log.aclose()


@contextlib.asynccontextmanager
async def reading(at: Address) -> AsyncGenerator[KafkaLog]:
    """A log for one who only reads, level with what is there when the block begins."""
    async with opened(at, extends=False) as log:
        await log.catch_up()
        yield log


def _last(found: sequence.Extents) -> int:
    return found.first + sum(each.end - each.start for each in found.extents) - 1
