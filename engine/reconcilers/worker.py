"""The owner of shards: takes turns, and commits what each of them decided in one append.

In a turn every shard folds what is new in the facts and in its own inputs; those which are due take a step. The
clock is the shell's and enters as the step's time. What is in memory is a cache of the log: whenever a turn did not
come to its end, because an append failed, its outcome is unknown or somebody cancelled it, the shards are thrown away
and recovered. Snapshots, where there is a place for them, shorten that. A shard whose records can't be read is set
aside; the others go on.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

import anyio
from msgspec import Struct

from engine import diagnostics, loop_share
from engine.deciders import folds
from engine.deciders.facts import Facts
from engine.log import owning, port
from engine.reconcilers import aside, barring, keepers, measuring, pacing, recovery
from engine.reconcilers.keeping import Keeping
from events import topics
from events.records import Record

Clock = Callable[[], int]
"""Milliseconds since 1970, never going backwards by more than a step's time allows."""

OWN_INPUTS_MAX: Final = 500
"""Inputs of each kind that a shard takes in one turn."""

REPORTS_MIN: Final = 50
"""Reports of members that are taken all the same while decisions wait: those come first in a storm."""

BUDGET: Final = 200
"""Keys that a shard decides in one turn: bounds how long others wait."""

_FACTS_MAX: Final = 2_000
_PAUSE_S: Final = 0.05
_PAUSE_S_MAX: Final = 5.0
"""How long a log that fails is left alone: from the first failure on doubled, up to the limit."""

_log = diagnostics.logger(__name__)


class _Landed(Struct, frozen=True):
    """A turn that is in the log: what it did, and by shard the offset of its step."""

    turn: measuring.Turn
    offsets: dict[int, int]


class Worker:
    """Owns shards of a log: ``turn`` by turn, or ``run``. ``owner`` is the right to write their steps."""

    def __init__(
        self,
        log: port.Log,
        clock: Clock,
        shards: Iterable[int] = range(topics.SHARDS),
        places: keepers.Places | None = None,
        owner: port.Owner | None = None,
    ) -> None:
        self._log = log
        self._clock = clock
        self._owner = owner or owning.SoleOwner(log)
        self._assigned = tuple(sorted(shards))
        self._barred = barring.Barred(clock)
        self._aside = aside.Aside(clock)
        self._keeping = Keeping(log, clock, places)
        self.measures = measuring.Measures()
        self._has_failed = True
        self.facts = Facts()
        self.folds: list[folds.ShardFold] = []
        self.seen_number = 0
        # Whether what is in memory is what the log says.
        self._is_level = False
        self._landing: asyncio.Task[_Landed] | None = None
        self._handed_over = 0
        self._pace = pacing.Pace()

    def assign(self, shards: Iterable[int]) -> None:
        """Says which shards to own from the next turn on; what they have in memory is kept for those that stay."""
        self._assigned = tuple(sorted(shards))
        self._barred.forget()
        self._aside.keep(self._assigned)

    async def recover(self) -> None:
        """Rebuilds the shards from the log, levels them, and begins a new term in each.

        Raises LogError where the log failed, or a shard can't be read; all others are there then.
        """
        await self._recover()
        for error in self.unreadable().values():
            raise error

    async def _recover(self) -> None:
        with suppress(port.LogError):
            await self._landed()
        self._is_level = False
        # All of them: a takeover that failed half-way owns shards without folds, which nobody would release otherwise.
        await self._release(range(topics.SHARDS))
        await self._adopt(self._wanted())

    async def _adopt(self, shards: Sequence[int]) -> None:
        """Takes shards over: each is stepped alone first, then levelled with the others.

        Those that can't be read are set aside. If it fails, the next turn recovers, and so releases them.
        """
        self._is_level = False
        await self._owner.own(shards)
        kept = await self._keeping.newest(shards)
        level = [(fold, self.facts) for fold in self.folds]
        steps: dict[int, list[Record]] = {}
        for shard in shards:
            try:
                fold, facts = await recovery.rebuilt(self._log, shard, kept.get(shard))
            except aside.UNREADABLE as error:
                await self._set_aside(shard, error)
                continue
            state = fold.state
            self._owner.begin(shard, state.number, state.term, state.digest)
            steps[shard] = fold.decide(facts, self._clock(), 0, term=state.term + 1).records
            level.append((fold, facts))
        level = await self._levelled(level)
        self.facts = level[0][1] if level else Facts()
        self.folds = sorted((fold for fold, _ in level), key=_shard_of)
        adopted = [fold for fold in self.folds if fold.state.shard in steps]
        with anyio.CancelScope(shield=True):
            await self._owner.commit([(fold.state.shard, steps[fold.state.shard]) for fold in adopted])
        self._is_level = True
        self._aside.take_back(fold.state.shard for fold in adopted)
        self.measures.took_over(len(adopted))
        _log.info("shards recovered", shards=len(adopted), keys=sum(len(f.state.bindings) for f in adopted))

    async def _levelled(
        self, level: Sequence[tuple[folds.ShardFold, Facts]]
    ) -> list[tuple[folds.ShardFold, Facts]]:
        """Takes all to one end of the facts; gives those for which that can be read."""
        ends = {
            topic: max((each.ends[topic] for _, each in level), default=0) for topic in topics.FACT_TOPICS
        }
        found: list[tuple[folds.ShardFold, Facts]] = []
        for facts in {id(each): each for _, each in level}.values():
            sharing = [fold for fold, its in level if its is facts]
            try:
                for topic, end in ends.items():
                    await recovery.follow_facts(self._log, sharing, facts, topic, end)
            except aside.UNREADABLE as error:
                for fold in sharing:
                    await self._set_aside(fold.state.shard, error)
            else:
                found += [(fold, facts) for fold in sharing]
        return found

    async def _set_aside(self, shard: int, error: port.LogError) -> None:
        """Leaves a shard alone that can't be read; what else is owned goes on."""
        self._aside.put(shard, error)
        await self._release([shard])

    async def _release(self, shards: Sequence[int]) -> None:
        """Gives shards up; nothing that they took in but did not commit had any effect."""
        self.folds = [fold for fold in self.folds if fold.state.shard not in shards]
        await self._owner.release(shards)

    def _wanted(self) -> list[int]:
        """The shards to own now: all that are assigned, but those that somebody else has just taken, or nobody can."""
        return [
            shard
            for shard in self._assigned
            if not self._barred.is_barred(shard) and not self._aside.is_resting(shard)
        ]

    async def _adjust(self) -> None:
        """Gives up what is not assigned any more, takes over what is assigned now."""
        wanted, owned = self._wanted(), {fold.state.shard for fold in self.folds}
        if gone := sorted(owned - set(wanted)):
            await self._release(gone)
            _log.info("shards given up", shards=len(gone))
        if new := [shard for shard in wanted if shard not in owned]:
            await self._adopt(new)

    async def turn(self) -> measuring.Turn:
        """Takes in what is new, decides what is due, commits it; recovers first where the last turn did not end.

        Raises LogError where the log failed.
        """
        await self._turn(keeps=False)
        return (await self._landed()).turn

    async def keep(self) -> None:
        """Keeps a snapshot, after a turn in which every shard takes a step; nothing where there is no place for it.

        Raises LogError where the log failed.
        """
        if self._keeping.is_on:
            await self._turn(keeps=True)
            await self._landed()

    async def _turn(self, *, keeps: bool) -> None:
        """Decides while the turn before may still be on its way into the log; hands its own steps over."""
        if not self._is_level:
            await self._recover()
        if self._wanted() != [fold.state.shard for fold in self.folds]:
            await self._landed()
            await self._adjust()
        self._is_level = False
        await self._owner.check()
        due_ms = self._snapshot_due_ms()
        keeps = keeps or (due_ms is not None and due_ms <= self._clock())
        self.seen_number = self._log.moves()
        ends = await self._ends()
        for topic in topics.FACT_TOPICS:
            end = ends.get((topic, 0), 0)
            await recovery.follow_facts(self._log, self.folds, self.facts, topic, end, _FACTS_MAX)
        steps: list[folds.Step] = []
        share = loop_share.LoopShare()
        unreadable: dict[int, port.LogError] = {}
        for fold in self.folds:
            try:
                await self._take_own(fold, ends)
            except aside.UNREADABLE as error:
                unreadable[fold.state.shard] = error
                continue
            now_ms = self._clock()
            if keeps or fold.is_due(now_ms):
                steps.append(await share.drain(fold.deciding(self.facts, now_ms, BUDGET)))
                await share.yield_loop()
        await self._landed()
        for shard, error in unreadable.items():
            await self._set_aside(shard, error)
        self._handed_over = sum(len(step.records) for step in steps)
        self._landing = asyncio.create_task(self._land(steps))
        self._is_level = True
        if keeps:
            landed = await self._landed()
            level = [(fold, landed.offsets[fold.state.shard]) for fold in self.folds]
            await self._keeping.keep(self.facts, level, is_whole=not self.unreadable())

    async def _land(self, steps: Sequence[folds.Step]) -> _Landed:
        """Commits what a turn gave."""
        began_s = time.monotonic()
        offsets: dict[int, int] = {}
        if steps:
            offsets = await self._owner.commit([(step.taken.shard, step.records) for step in steps])
        turn = measuring.turn_of(steps, self._clock(), time.monotonic() - began_s)
        self.measures.turned(turn)
        self._has_failed = False
        return _Landed(turn, offsets)

    async def _landed(self) -> _Landed:
        """Waits until the last turn is in the log; raises what its commit raised, and then nothing is level any more.

        Whoever cancels it waits, so that the outcome is known.
        """
        landing = self._landing
        if landing is None:
            return _Landed(measuring.turn_of((), self._clock(), 0.0), {})
        try:
            with anyio.CancelScope(shield=True):
                await asyncio.wait([landing])
        except asyncio.CancelledError:
            # Cancelled by other means than a scope's.
            await asyncio.wait([landing])
            raise
        finally:
            is_done = landing.done() and not landing.cancelled() and landing.exception() is None
            self._landing = None if landing.done() else landing
            self._is_level = self._is_level and is_done
        return landing.result()

    async def _ends(self) -> dict[tuple[str, int], int]:
        """How far to take each input.

        Links only up to an end that was known before all others': who asks finds what he saw when he asked.
        """
        ends = dict(self._log.ends())
        asked = {slot: end for slot, end in ends.items() if slot[0] == topics.LINKS}
        if any(
            asked.get((topics.LINKS, fold.state.shard), 0) > fold.ends[topics.LINKS] for fold in self.folds
        ):
            await self._log.level()
            ends = dict(self._log.ends()) | asked
        return ends

    def is_behind(self) -> bool:
        """Whether inputs or keys wait that the last turn left, or it did not come to its end."""
        return self._landing is not None or self._has_work()

    def _has_work(self) -> bool:
        """Whether there is something to decide, or the last turn failed."""
        if not self._is_level or self._wanted() != [fold.state.shard for fold in self.folds]:
            return True
        ends = self._log.ends()
        if any(ends.get((topic, 0), 0) > self.facts.ends[topic] for topic in topics.FACT_TOPICS):
            return True
        return any(
            fold.state.waiting
            or fold.state.reported
            or any(ends.get((topic, fold.state.shard), 0) > fold.ends[topic] for topic in topics.OWN_TOPICS)
            for fold in self.folds
        )

    def is_steady(self) -> bool:
        """Whether it owns what it is assigned, and its last turn did not fail; it may well be behind its inputs."""
        return not self._has_failed and tuple(fold.state.shard for fold in self.folds) == self._assigned

    def unreadable(self) -> dict[int, port.LogError]:
        """By shard what is wrong with its records, and the remedy, for all that were set aside."""
        return self._aside.errors()

    def next_timer_ms(self) -> int | None:
        """When time alone makes a shard due; None for never."""
        dues = [due for fold in self.folds if (due := fold.next_timer_ms()) is not None]
        return min(dues, default=None)

    async def run(self) -> None:
        """Takes turns for ever, at the pace of the inputs and the timers; goes on when a log that failed is well."""
        try:
            await self._run()
        finally:
            with suppress(port.LogError):
                await self._landed()

    async def _run(self) -> None:
        pause_s = _PAUSE_S
        while True:
            try:
                await self._turn(keeps=False)
                if not self._has_work():
                    await self._landed()
            except port.OwnershipLostError as error:
                self._fail()
                self.bar(error.shards)
                continue
            except port.LogError as error:
                self._fail()
                _log.warning("turn failed, recovering", error=str(error), pause_s=pause_s)
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, _PAUSE_S_MAX)
                continue
            pause_s = _PAUSE_S
            await asyncio.sleep(self._pace.pause_s(self._handed_over, time.monotonic()))
            await self._wait()

    def _fail(self) -> None:
        self._has_failed = True
        self.measures.failed()

    def bar(self, shards: Sequence[int]) -> None:
        """Leaves shards alone that somebody else took: he was told that they are his, and so shall we be."""
        self._barred.bar(shards)

    async def _wait(self) -> None:
        """Returns when there is something to do."""
        if self.is_behind():
            return
        dues = (
            self.next_timer_ms(),
            self._snapshot_due_ms(),
            *self._barred.dues_ms(),
            *self._aside.dues_ms(),
        )
        due_ms = min((due for due in dues if due is not None), default=None)
        delay_s = None if due_ms is None else max(due_ms - self._clock(), 0) / 1000
        try:
            async with asyncio.timeout(delay_s):
                while not self.is_behind():
                    await self._log.wait(self._log.moves())
        except TimeoutError:
            return

    def _snapshot_due_ms(self) -> int | None:
        return self._keeping.due_ms(is_storm=any(fold.state.waiting for fold in self.folds))

    async def _take_own(self, fold: folds.ShardFold, ends: port.Ends) -> None:
        for topic in topics.OWN_TOPICS:
            most = REPORTS_MIN if topic == topics.HEALTH and fold.state.waiting else OWN_INPUTS_MAX
            await recovery.take_own(self._log, fold, topic, ends.get((topic, fold.state.shard), 0), most)


def _shard_of(fold: folds.ShardFold) -> int:
    return fold.state.shard
