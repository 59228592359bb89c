"""The owner of shards: takes turns and commits the decisions of each turn together.

In a turn every shard folds new facts and its own new inputs; shards with something to decide take a step. The
clock is read here and enters the step as its time. Memory is a cache of the log: if a turn does not complete
(an append failed, its outcome is unknown, or the turn was cancelled), all shards are discarded and recovered
from the log, from snapshots if there are any. A shard with unreadable records is quarantined; the others
continue.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import anyio
from msgspec import Struct

from engine import diagnostics, loop_share
from engine.deciders import shard_fold
from engine.deciders.facts import Facts
from engine.log import local, port
from engine.reconcilers import paused_shards, recovery, replay, snapshot_storage, turns
from engine.reconcilers.snapshot_schedule import SnapshotSchedule
from events import times, topics
from events.records import Record

Clock = Callable[[], int]
"""Milliseconds since 1970. Steps never go back in time: a step's time is at least that of the step before."""

BUDGET: Final = 200
"""Maximum number of keys that a shard decides in one turn, so that other shards do not wait long."""

_FACTS_MAX: Final = 2_000
_PAUSE_S: Final = 0.05
_PAUSE_S_MAX: Final = 5.0
"""Pause after a failure of the log; it doubles from ``_PAUSE_S`` up to ``_PAUSE_S_MAX``."""

_log = diagnostics.logger(__name__)


class _CommittedTurn(Struct, frozen=True):
    """A committed turn: its measurements, and the offset of each shard's step."""

    turn: turns.Turn
    offsets: dict[int, int]


class Worker:
    """Owner of shards of a log; call ``turn`` repeatedly or ``run``.

    ``owner`` grants the right to write their steps.
    """

    def __init__(
        self,
        log: port.Log,
        clock: Clock,
        shards: Iterable[int] = range(topics.SHARDS),
        storage: snapshot_storage.SnapshotStorage | None = None,
        owner: port.Owner | None = None,
    ) -> None:
        self._log = log
        self._clock = clock
        self._owner = owner or local.SoleOwner(log)
        self._assigned = tuple(sorted(shards))
        self._fenced = paused_shards.PausedShards(clock)
        self._quarantine = paused_shards.Quarantine(clock)
        self._snapshots = SnapshotSchedule(log, clock, storage)
        self.measures = turns.Measures()
        self._has_failed = True
        self.facts = Facts()
        self.folds: list[shard_fold.ShardFold] = []
        self.seen_number = 0
        # Whether memory equals the log, assuming that ``_commit_task`` succeeds; if False, the next turn recovers.
        self._is_in_sync = False
        self._commit_task: asyncio.Task[_CommittedTurn] | None = None
        self._handed_over = 0
        self._rebuilt: dict[int, tuple[shard_fold.ShardFold, Facts]] = {}
        self._pace = turns.Pace()

    def start_from(self, rebuilt: Mapping[int, tuple[shard_fold.ShardFold, Facts]]) -> None:
        """Let the first recovery use these rebuilt shards instead of reading the log; the worker changes them."""
        self._rebuilt = dict(rebuilt)

    def assign(self, shards: Iterable[int]) -> None:
        """Set the shards to own from the next turn on; shards that stay keep their state in memory."""
        self._assigned = tuple(sorted(shards))
        self._fenced.retain(())
        self._quarantine.retain(self._assigned)

    async def recover(self) -> None:
        """Rebuild the shards from the log, fold their facts up to the same end and begin a new term in each.

        Raises LogError if the log fails or a shard is unreadable; all other shards are recovered by then.
        """
        await self._recover()
        for error in self.unreadable().values():
            raise error

    async def _recover(self) -> None:
        with suppress(port.LogError):
            await self._await_commit()
        self._is_in_sync = False
        # Release all: after a failed takeover the owner has shards without folds, which nothing else would release.
        await self._release(range(topics.SHARDS))
        await self._take_over(self._claimable())

    async def _take_over(self, shards: Sequence[int]) -> None:
        """Take over shards: each takes the first step of a new term; then all owned shards fold facts to the same end.

        Unreadable shards are quarantined. If the takeover fails for another reason, the next turn recovers, which
        releases the shards.
        """
        self._is_in_sync = False
        await self._owner.own(shards)
        aligned = [(fold, self.facts) for fold in self.folds]
        steps: dict[int, list[Record]] = {}
        for fold, facts in await self._rebuild(shards):
            # The empty step of a new term comes first: the fold then ignores steps that a former owner appends late.
            state = fold.state
            self._owner.begin(state.shard, state.number, state.term, state.digest)
            steps[state.shard] = fold.decide(facts, self._clock(), 0, term=state.term + 1).records
            aligned.append((fold, facts))
        aligned, unreadable = await recovery.align_facts(self._log, aligned)
        for shard, error in unreadable.items():
            await self._quarantine_shard(shard, error)
        self.facts = aligned[0][1] if aligned else Facts()
        self.folds = sorted((fold for fold, _ in aligned), key=_shard_of)
        adopted = [fold for fold in self.folds if fold.state.shard in steps]
        # Shielded: a cancelled commit has an unknown outcome. ``_is_in_sync`` is False until it is known.
        with anyio.CancelScope(shield=True):
            await self._owner.commit([(fold.state.shard, steps[fold.state.shard]) for fold in adopted])
        self._is_in_sync = True
        self._quarantine.release(fold.state.shard for fold in adopted)
        self.measures.count_takeovers(len(adopted))
        _log.info("shards recovered", shards=len(adopted), keys=sum(len(f.state.bindings) for f in adopted))

    async def _rebuild(self, shards: Sequence[int]) -> list[tuple[shard_fold.ShardFold, Facts]]:
        """Return the shards with all recorded steps applied; quarantine unreadable ones."""
        rebuilt, self._rebuilt = self._rebuilt, {}
        if not rebuilt:
            newest = await self._snapshots.newest(shards)
            for result in await replay.rebuild_all(self._log, shards, newest):
                for shard, error in result.unreadable.items():
                    await self._quarantine_shard(shard, error)
                rebuilt |= result.shards
        return [rebuilt[shard] for shard in shards if shard in rebuilt]

    async def _quarantine_shard(self, shard: int, error: port.LogError) -> None:
        """Quarantine an unreadable shard; the other shards continue."""
        self._quarantine.put(shard, error)
        await self._release([shard])

    async def _release(self, shards: Sequence[int]) -> None:
        """Release shards; inputs that were folded but not committed had no effect."""
        self.folds = [fold for fold in self.folds if fold.state.shard not in shards]
        await self._owner.release(shards)

    def _claimable(self) -> list[int]:
        """Return the assigned shards that are neither fenced nor quarantined."""
        return [
            shard
            for shard in self._assigned
            if not self._fenced.is_paused(shard) and not self._quarantine.is_paused(shard)
        ]

    async def _adjust(self) -> None:
        """Release owned shards that are no longer claimable, and take over claimable ones."""
        claimable, owned = self._claimable(), {fold.state.shard for fold in self.folds}
        if released := sorted(owned - set(claimable)):
            await self._release(released)
            _log.info("shards released", shards=len(released))
        if added := [shard for shard in claimable if shard not in owned]:
            await self._take_over(added)

    async def turn(self) -> turns.Turn:
        """Fold new inputs, decide what is due and commit it; recover first if the last turn did not complete.

        Raises LogError if the log fails.
        """
        await self._turn(with_snapshots=False)
        return (await self._await_commit()).turn

    async def store_snapshot(self) -> None:
        """Run a turn in which every shard takes a step, then store a snapshot; do nothing without snapshot storage.

        Raises LogError if the log fails.
        """
        if self._snapshots.is_on:
            await self._turn(with_snapshots=True)
            await self._await_commit()

    async def _turn(self, *, with_snapshots: bool) -> None:
        """Decide while the previous turn may still be committing, then start the commit of this turn."""
        if not self._is_in_sync:
            await self._recover()
        if self._claimable() != [fold.state.shard for fold in self.folds]:
            await self._await_commit()
            await self._adjust()
        # From here on, memory is ahead of the log: if this method does not complete, the next turn must recover.
        self._is_in_sync = False
        await self._owner.check()
        due_ms = self._snapshot_due_ms()
        with_snapshots = with_snapshots or (due_ms is not None and due_ms <= self._clock())
        self.seen_number = self._log.change_count()
        # Facts before own inputs: a replay folds the inputs of each step in this order (``Replay._take_inputs``).
        ends = await self._follow_facts(await self._ends())
        steps: list[shard_fold.Step] = []
        share = loop_share.LoopShare()
        unreadable: dict[int, port.LogError] = {}
        for fold in self.folds:
            try:
                await recovery.take_inputs(self._log, fold, ends)
            except paused_shards.UNREADABLE as error:
                unreadable[fold.state.shard] = error
                continue
            now_ms = self._clock()
            # With ``with_snapshots`` every shard takes a step, since a snapshot holds the state directly after one.
            if with_snapshots or fold.is_due(now_ms):
                steps.append(await share.drain(fold.decide_in_portions(self.facts, now_ms, BUDGET)))
                await share.yield_loop()
        # At most one commit runs at a time: wait for the previous one before this turn's records are written. If it
        # failed, the wait raises its error, and the steps above, which build on it, are discarded.
        await self._await_commit()
        # Only after the wait: a release ends a shard's producer, with which the previous commit may still write.
        for shard, error in unreadable.items():
            await self._quarantine_shard(shard, error)
        self._handed_over = sum(len(step.records) for step in steps)
        self._commit_task = asyncio.create_task(self._commit(steps))
        # Set last, when the commit has been started; ``_await_commit`` clears the flag if that commit fails.
        self._is_in_sync = True
        if with_snapshots:
            committed = await self._await_commit()
            stored = [(fold, committed.offsets[fold.state.shard]) for fold in self.folds]
            await self._snapshots.store(self.facts, stored, is_whole=not self.unreadable())

    async def _follow_facts(self, ends: port.Ends) -> port.Ends:
        """Fold at most ``_FACTS_MAX`` facts of each topic; return the ends up to which own inputs may be taken."""
        for topic in topics.FACT_TOPICS:
            await recovery.follow_facts(
                self._log, self.folds, self.facts, topic, ends.get((topic, 0), 0), _FACTS_MAX
            )
        if all(self.facts.ends[topic] >= ends.get((topic, 0), 0) for topic in topics.FACT_TOPICS):
            return ends
        # Take no links while facts are left to fold: the senders of the links may have seen these facts.
        return {slot: end for slot, end in ends.items() if slot[0] != topics.LINKS}

    async def _commit(self, steps: Sequence[shard_fold.Step]) -> _CommittedTurn:
        """Commit the steps of a turn and count them; runs as a task beside the next turn."""
        # The next turn changes the folds meanwhile, so use nothing but the steps.
        began_s = time.monotonic()
        offsets: dict[int, int] = {}
        if steps:
            offsets = await self._owner.commit([(step.taken.shard, step.records) for step in steps])
        turn = turns.turn_of(steps, self._clock(), time.monotonic() - began_s)
        self.measures.count_turn(turn)
        self._has_failed = False
        return _CommittedTurn(turn, offsets)

    async def _await_commit(self) -> _CommittedTurn:
        """Wait until the last turn is committed; raise its error, after which memory no longer equals the log.

        A cancelled caller waits too, so that the outcome is known.
        """
        commit = self._commit_task
        if commit is None:
            return _CommittedTurn(turns.turn_of((), self._clock(), 0.0), {})
        try:
            with anyio.CancelScope(shield=True):
                await asyncio.wait([commit])
        except asyncio.CancelledError:
            # asyncio itself cancelled the task: the shield protects only from cancellation by anyio scopes.
            await asyncio.wait([commit])
            raise
        finally:
            is_done = commit.done() and not commit.cancelled() and commit.exception() is None
            self._commit_task = None if commit.done() else commit
            self._is_in_sync = self._is_in_sync and is_done
        return commit.result()

    async def _ends(self) -> dict[tuple[str, int], int]:
        """Return the end up to which each input is taken in this turn.

        A link must be folded after every fact that its sender had seen, so the ends of links are sampled
        first.
        """
        ends = dict(self._log.ends())
        link_ends = {slot: end for slot, end in ends.items() if slot[0] == topics.LINKS}
        if any(
            link_ends.get((topics.LINKS, fold.state.shard), 0) > fold.ends[topics.LINKS]
            for fold in self.folds
        ):
            # Only after the links' ends were sampled: ``wait_current`` brings all other ends up to date.
            await self._log.wait_current()
            ends = dict(self._log.ends()) | link_ends
        return ends

    def is_behind(self) -> bool:
        """Whether inputs or keys are left over from the last turn, or the turn is not committed yet."""
        return self._commit_task is not None or self._has_work()

    def _has_work(self) -> bool:
        """Whether inputs or keys are undecided, the last turn failed, or shards must be taken over or released."""
        if not self._is_in_sync or self._claimable() != [fold.state.shard for fold in self.folds]:
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
        """Whether the worker owns all assigned shards and its last turn succeeded.

        It may still be behind its inputs.
        """
        return not self._has_failed and tuple(fold.state.shard for fold in self.folds) == self._assigned

    def unreadable(self) -> dict[int, port.LogError]:
        """Return the error of each quarantined shard; its message names the remedy."""
        return self._quarantine.errors()

    def next_timer_ms(self) -> int | None:
        """Return the time at which the next timer of any shard is due; None for never."""
        dues = [due for fold in self.folds if (due := fold.next_timer_ms()) is not None]
        return min(dues, default=None)

    async def run(self) -> None:
        """Take turns forever, when inputs arrive or timers are due; recover after failures of the log."""
        try:
            await self._run()
        finally:
            with suppress(port.LogError):
                await self._await_commit()

    async def _run(self) -> None:
        pause_s = _PAUSE_S
        while True:
            try:
                await self._turn(with_snapshots=False)
                if not self._has_work():
                    await self._await_commit()
            except port.OwnershipLostError as error:
                self._fail()
                self.fence(error.shards)
                # No pause here: the fenced shards have their own pauses, and the other shards must not wait.
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
        self.measures.count_failure()

    def fence(self, shards: Sequence[int]) -> None:
        """Stop claiming shards that another worker fenced, until their pauses or the current assignment end."""
        for shard in shards:
            self._fenced.pause(shard)

    async def _wait(self) -> None:
        """Return when a turn is due: for inputs, a timer, a snapshot, an ownership check or a shard's retry."""
        if self.is_behind():
            return
        dues = (
            self.next_timer_ms(),
            self._snapshot_due_ms(),
            self._owner.check_due_ms(),
            *self._fenced.dues_ms(),
            *self._quarantine.dues_ms(),
        )
        due_ms = min((due for due in dues if due is not None), default=None)
        delay_s = None if due_ms is None else times.wait_s(due_ms, self._clock())
        try:
            async with asyncio.timeout(delay_s):
                # No await between this check and ``change_count()``: a record in between them would not end the wait.
                while not self.is_behind():
                    await self._log.wait(self._log.change_count())
        except TimeoutError:
            return

    def _snapshot_due_ms(self) -> int | None:
        return self._snapshots.due_ms(is_storm=any(fold.state.waiting for fold in self.folds))


def _shard_of(fold: shard_fold.ShardFold) -> int:
    return fold.state.shard
