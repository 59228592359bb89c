"""Run the real engine on a fork of its log, in virtual time: worker, simulated members and hypothetical inputs.

The rules, the timers and the members are those of a running installation. Virtual time jumps to the next time
at which something is due, so hours pass in milliseconds, and the same fork gives the same result.
"""

from collections.abc import Callable, Sequence
from typing import Final

from engine.domain.clusters import Health
from engine.plans import comparison, fork_log, member_models, recorded_shards
from engine.plans.questions import Failure, Input, PlanError
from engine.reconcilers import worker
from engine.simulation import faults, member_fleet, specs
from events import clusters

_TURNS_MAX: Final = 10_000
"""Maximum number of turns at one instant of virtual time; a healthy engine needs a few."""


class Fork:
    """The engine on a fork of a log, in virtual time.

    ``number`` is the sequence number of the last record before the fork. ``began_ms`` is the start of virtual time,
    in milliseconds since 1970. ``heartbeats`` is the last reported health of the clusters whose agents send
    heartbeats. ``was_stable``: during the last ``run``, nothing would have happened without its inputs and failures.
    """

    def __init__(
        self,
        log: fork_log.ForkLog,
        simulated: Sequence[specs.MemberSpec],
        began_ms: int,
        shards: recorded_shards.RecordedShards | None = None,
    ) -> None:
        """``shards`` are reused from an earlier fork of the same log; ``start`` brings them to the end of ``log``."""
        self.log = log
        self.shards = recorded_shards.RecordedShards() if shards is None else shards
        self.number = log.last_number()
        self.began_ms = self.now_ms = began_ms
        self.worker = worker.Worker(log, self._clock)
        self.members = member_fleet.Members(log, self._clock, simulated)
        self.assumptions: tuple[str, ...] = ()
        self.before = comparison.NOTHING
        self.heartbeats: dict[str, Health] = {}
        self.was_stable = True
        self._simulated = simulated

    async def start(self) -> None:
        """Rebuild the engine at the fork; the shards stay as recorded until ``take_over``."""
        await self.shards.follow(self.log)
        facts, folds = await self.shards.newest_facts(self.log), self.shards.folds
        models = member_models.read(facts, self._simulated)
        past = await member_models.past(models, facts, folds, self.log)
        self.assumptions = models.assumptions
        self.members = member_fleet.Members(self.log, self._clock, models.specs, past)
        await self.members.recover()
        member_models.load(models, self.members)
        self.before = comparison.start_of(folds, self.capacity())
        self.heartbeats = member_models.heartbeats(models, facts)
        # A fork runs no agents: without these reports, the clusters of all agents would soon count as silent.
        await self.log.append(
            [member_models.heartbeat(name, known, self.now_ms) for name, known in self.heartbeats.items()]
        )

    async def take_over(self) -> None:
        """Make the worker the owner of the shards, if it is not yet; from then on only this fork may use them."""
        if not self.worker.folds:
            self.worker.start_from(self.shards.shards)
            await self.worker.recover()

    def begin(self, began_ms: int, faults_now: Sequence[Failure] = ()) -> int:
        """Set the start of virtual time, in ms since 1970, but not before the time of the fork; return it.

        ``faults_now`` are the faults that members have already: they are not in the log.
        """
        self.began_ms = self.now_ms = max(self.now_ms, began_ms)
        for fault in faults_now:
            faults.inflict(self.members.state_of(fault.member), fault.kind, fault.amount)
        return self.began_ms

    def capacity(self) -> dict[str, clusters.CapacityReported]:
        """Return the last report of each member on its capacity."""
        reports = {name: self.members.state_of(name).reported_capacity for name in self.members.names()}
        return {name: report for name, report in reports.items() if report is not None}

    async def run(
        self,
        inputs: Sequence[Input],
        failures: Sequence[Failure],
        horizon_ms: int,
        progress: Callable[[int], None] = lambda _: None,
    ) -> bool:
        """Pass virtual time until nothing is due before the horizon; return whether no decision is due later either.

        ``progress`` gets the virtual time that has passed, in milliseconds. Raises PlanError if the engine does not
        become stable, or if a fault cannot be applied.
        """
        await self.take_over()
        # The real members have already tried to start the pods that wait for capacity; the members rebuilt
        # for the fork have not. Let them try now, or they would try the pods of the inputs first.
        count = len(self.log.added)
        await self._run_until_idle()
        end_ms = self.began_ms + horizon_ms
        due_ms = self._due_ms()
        self.was_stable = len(self.log.added) == count and (due_ms is None or due_ms > end_ms)
        waiting = sorted([*inputs, *failures], key=lambda planned: planned.after_ms)
        while True:
            while waiting and waiting[0].after_ms <= self.now_ms - self.began_ms:
                await self._apply(waiting.pop(0))
            await self._run_until_idle()
            due_ms = self._due_ms()
            dues = [self.began_ms + planned.after_ms for planned in waiting[:1]]
            dues += [due_ms] if due_ms is not None else []
            if not dues or min(dues) > end_ms:
                return not waiting and self.worker.next_timer_ms() is None
            self.now_ms = max(self.now_ms, min(dues))
            progress(self.now_ms - self.began_ms)

    async def _apply(self, change: Input | Failure) -> None:
        if isinstance(change, Input):
            await self.log.append([change.record])
            return
        try:
            if change.kind == "down" and (known := self.heartbeats.get(change.member)) is not None:
                # The cluster's agent fails with it: its grace period begins, and nothing reports the failure.
                last = member_models.heartbeat(change.member, known, self.now_ms, known.grace_seconds)
                await self.log.append([last])
            await self.members.fault(change.member, change.kind, change.amount)
        except (LookupError, ValueError) as error:
            raise PlanError(str(error.args[0])) from None

    async def _run_until_idle(self) -> None:
        """Take turns until nothing is left to do at this instant."""
        for _ in range(_TURNS_MAX):
            await self.worker.turn()
            await self.members.turn()
            if not self.worker.is_behind() and not self.members.is_behind():
                return
        raise PlanError(f"the engine still has work after {_TURNS_MAX} turns at one instant")

    def _due_ms(self) -> int | None:
        """Return the next time at which the engine or a member acts by itself; None for never."""
        timers_ms = self.worker.next_timer_ms(), self.members.next_timer_ms()
        return min((due_ms for due_ms in timers_ms if due_ms is not None), default=None)

    def _clock(self) -> int:
        return self.now_ms
