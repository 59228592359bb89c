"""The members of one process: read their works, advance them, append their reports in one append per turn.

The module ``cluster`` is pure; this one does the I/O around it: log, clock and tasks. States in memory are a cache:
after a failed read or append, as after a crash, the members are rebuilt from the log.
"""

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from engine import diagnostics
from engine.log import port
from engine.simulation import (
    cluster,
    faults,
    listed_statuses,
    lists,
    log_reading,
    member_history,
    pending_changes,
    recovery,
    reports,
    specs,
)
from engine.simulation.state import MemberState
from engine.works import manifests, template_loading
from events import attributes, catalogue, clusters, codec, keys, records, shapes, times, topics
from events.records import StoredRecord

Clock = Callable[[], int]
"""Milliseconds since 1970."""

_WORKS_MAX: Final = 1_000
"""Maximum number of works per partition and turn, so that reports do not wait long to be appended."""

_FOLLOWED: Final = catalogue.types_of(
    clusters.ClusterJoined, clusters.ClusterLeft, clusters.ClusterHealthChanged
)
_log = diagnostics.logger(__name__)


class UnknownMemberError(LookupError):
    """No simulated member has this name; the message lists the existing ones."""


class Members:
    """Simulated members on a log; call ``turn`` or ``run``, all methods from one event loop.

    The first recovery uses the histories in ``past``; only members without a history are read from the log.
    """

    def __init__(
        self,
        log: port.Log,
        clock_ms: Clock,
        members: Sequence[specs.MemberSpec],
        past: member_history.Past | None = None,
    ) -> None:
        self._log = log
        self._clock_ms = clock_ms
        self._specs = tuple(members)
        self._past = past
        self._partitions = sorted({keys.shard_of(spec.name) for spec in members})
        self._contents = log_reading.Contents(template_loading.TemplateLoader(log), manifests.Renderer(log))
        self._lock = asyncio.Lock()
        self._states: dict[str, MemberState] = {}
        self._taken: dict[int, int] = {}
        self._valid_works = log_reading.ValidWorks(log)
        self._clusters_taken = 0
        self._writes = pending_changes.ClientWrites()
        self._missed_from: dict[str, int] = {}
        self._unseen: frozenset[str] = frozenset()
        self._touched: dict[str, None] = {}
        self._unrestored = recovery.UnrestoredWorkloads(self._contents.loader, {})
        self._dues = pending_changes.DueTimes()
        self._is_stale = True
        self._reporting = asyncio.Event()
        self._records = reports.ReportRecords()
        self.seen_number = 0

    async def recover(self) -> None:
        """Rebuild the members from the log; the first turn sends pending reports."""
        async with self._lock:
            await self._recover()

    async def turn(self) -> int:
        """Apply new works, advance time and append reports; return the number of records appended.

        Raises LogError if a read or the append failed; the next turn then rebuilds the members first.
        """
        async with self._lock:
            await self._refresh()
            return await self._turn()

    def is_behind(self) -> bool:
        """Whether a turn has work to do: members to rebuild, works to apply, or reports left from the last turn."""
        if self._is_stale or self._touched:
            return True
        ends = self._log.ends()
        return any(ends.get((topics.WORKS, partition), 0) > taken for partition, taken in self._taken.items())

    async def wait_joined(self) -> None:
        """Return after the first turn: the members are rebuilt, and all of them have joined."""
        await self._reporting.wait()

    def next_timer_ms(self) -> int | None:
        """Return the time of the next change of a member without an input, in milliseconds; None for never."""
        return self._dues.next_ms()

    async def run(self) -> None:
        """Take turns forever, when works arrive or timers are due; rebuild at first and after a failure of the log."""
        while True:
            try:
                await self.turn()
            except port.LogCorruptedError:
                raise
            except port.LogError as error:
                _log.warning("turn failed, members will be rebuilt", error=str(error))
                await asyncio.sleep(port.AFTER_FAILURE_S)
            await self._wait()

    async def fault(self, name: str, kind: listed_statuses.FaultKind, amount: int | None = None) -> None:
        """Add a fault to a member; see ``faults.inflict`` for the amounts.

        Raises UnknownMemberError, or ValueError for an invalid amount.
        """
        async with self._lock:
            await self._refresh()
            state = self.state_of(name)
            faults.inflict(state, kind, amount)
            self._mark_cut_off(name)
            self._touched[name] = None
            await self._turn()

    async def heal(self, name: str) -> None:
        """Remove all faults of a member; it applies missed works and sends lost reports again.

        Raises UnknownMemberError.
        """
        async with self._lock:
            await self._refresh()
            state = self.state_of(name)
            faults.heal(state)
            self._touched[name] = None
            await self._turn()

    async def write(self, name: str, *data: clusters.MemberWrite) -> None:
        """Record writes of a client in a member, all or none, and carry them out.

        Raises UnknownMemberError, and LogError if the append failed.
        """
        async with self._lock:
            await self._refresh()
            self.state_of(name)
            # After a failed append it is unknown whether the write was stored: rebuild the members from the log.
            self._is_stale = True
            await self._log.append([self._own_record(name, event, self._clock_ms()) for event in data])
            self._is_stale = False
            await self._turn()

    def pods(
        self,
        member: str | None = None,
        namespace: str | None = None,
        labels: lists.LabelTest | None = None,
        limit: int | None = None,
    ) -> list[listed_statuses.Pod]:
        """Return up to ``limit`` pods, sorted by member, workload and age; None for an argument means all.

        Raises UnknownMemberError.
        """
        return lists.pods(self._selected(member), namespace, labels, limit)

    def workloads(
        self, member: str | None = None, namespace: str | None = None, limit: int | None = None
    ) -> list[listed_statuses.WorkloadStatus]:
        """Return up to ``limit`` workloads, sorted by member and key; None means all. Raises UnknownMemberError."""
        return lists.workloads(self._selected(member), namespace, limit)

    def state_of(self, name: str) -> MemberState:
        """Return the live state of a member; other modules do not change it. Raises UnknownMemberError."""
        state = self._states.get(name)
        if state is None:
            names = ", ".join(sorted(self._states)) or "none"
            raise UnknownMemberError(f"no simulated member is named {name!r}; existing members: {names}")
        return state

    def names(self) -> list[str]:
        """Return the names of all members, sorted."""
        return sorted(self._states)

    def statuses(self) -> list[listed_statuses.MemberStatus]:
        """Return the status of each member with its faults, sorted by name."""
        return [faults.status_of(state) for state in self._selected(None)]

    async def _wait(self) -> None:
        """Wait until the log has new records or a timer is due; return at once if work is left."""
        if self.is_behind():
            return
        due_ms = self.next_timer_ms()
        delay_s = None if due_ms is None else times.wait_s(due_ms, self._clock_ms())
        try:
            async with asyncio.timeout(delay_s):
                await self._log.wait(self.seen_number)
        except TimeoutError:
            return

    async def _recover(self) -> None:
        self.seen_number = self._log.change_count()
        # Do not reset the count, the other part of the report ids: the log may still store a batch whose append
        # failed. A new report with the id of a report in that batch would be dropped as its duplicate.
        self._records.start = self.seen_number
        ends = dict(self._log.ends())
        past, self._past = self._past, None
        histories = {} if past is None else past.histories
        if past is not None and histories.keys() >= {spec.name for spec in self._specs}:
            self._valid_works = log_reading.ValidWorks(self._log, past.chains, ends)
        else:
            self._valid_works = log_reading.ValidWorks(self._log)
        self._states, self._missed_from, self._unseen = await log_reading.rebuild(
            self._log,
            self._contents,
            self._specs,
            ends,
            self._valid_works,
            self._clock_ms,
            histories,
        )
        self._unrestored = recovery.UnrestoredWorkloads(self._contents.loader, histories)
        await self._unrestored.restore_around(self._states, self._states, (), self._clock_ms())
        self._taken = {partition: ends.get((topics.WORKS, partition), 0) for partition in self._partitions}
        self._clusters_taken = ends.get((topics.CLUSTERS, 0), 0)
        for name in self._states:
            self._mark_cut_off(name)
        self._touched = dict.fromkeys(self._states)
        self._writes = pending_changes.ClientWrites()
        self._dues = pending_changes.DueTimes()
        self._is_stale = False
        workloads = sum(len(state.workloads) for state in self._states.values())
        _log.info("members rebuilt", members=len(self._states), workloads=workloads)

    async def _refresh(self) -> None:
        if self._is_stale:
            await self._recover()

    async def _turn(self) -> int:
        # A work can be judged only once, and members mark reports as sent before the log contains them. So if a read
        # or the append fails, or the caller is cancelled, the states are invalid and the next turn rebuilds them.
        self._is_stale = True
        self.seen_number = self._log.change_count()
        ends = dict(self._log.ends())
        await self._follow_clusters(ends.get((topics.CLUSTERS, 0), 0))
        await self._apply(self._for_running_members(await self._valid_works.follow(ends)))
        for partition in self._partitions:
            await self._take_works(partition, ends.get((topics.WORKS, partition), 0))
        for name in self._writes.settled(self._taken, ends):
            self._take_writes(name, sys.maxsize)
        for name in sorted(self._missed_from):
            if not self._states[name].faults.cut_off:
                await self._catch_up(name)
        now_ms = self._clock_ms()
        self._touched |= dict.fromkeys(self._dues.pop(now_ms))
        batch = [self._join(name, now_ms) for name in sorted(self._unseen)]
        for name in self._touched:
            batch += self._advance(name, now_ms)
            await asyncio.sleep(0)
        await self._log.append(batch)
        self._is_stale = False
        self._unseen = frozenset()
        self._reporting.set()
        self._touched = {name: None for name in self._touched if cluster.is_behind(self._states[name])}
        return len(batch)

    def _advance(self, name: str, now_ms: int) -> list[records.Record]:
        state = self._states[name]
        batch = [self._records.encode(name, report, now_ms) for report in cluster.advance(state, now_ms)]
        if name not in self._writes:
            batch += [
                self._own_record(name, write, now_ms) for write in cluster.controller_writes(state, now_ms)
            ]
        self._dues.set(name, cluster.due_ms(state))
        return batch

    def _join(self, name: str, now_ms: int) -> records.Record:
        state = self._states[name]
        state.joined = True
        return self._own_record(name, specs.joined_event(state.spec), now_ms)

    def _own_record(self, name: str, data: shapes.Event, now_ms: int) -> records.Record:
        """Return the record of an event about a member itself."""
        return self._records.encode(name, reports.Report(data, name, reports.NO_WORK), now_ms)

    async def _take_works(self, partition: int, end: int) -> None:
        """Apply the works of a partition up to an end, at most ``_WORKS_MAX``."""
        end = min(end, self._taken[partition] + _WORKS_MAX)
        while self._taken[partition] < end:
            start = self._taken[partition]
            batch = await self._log.read(topics.WORKS, partition, start, min(log_reading.READ, end - start))
            await self._apply(
                self._for_running_members([record for record in batch if self._valid_works.judge(record)])
            )
            self._taken[partition] = port.offset_after(batch, end)
            await asyncio.sleep(0)

    def _for_running_members(self, batch: Iterable[StoredRecord]) -> list[StoredRecord]:
        """Return the works of members that are up; members that are down read theirs from the log later."""
        return [
            record for record in batch if record.key in self._states and record.key not in self._missed_from
        ]

    async def _catch_up(self, name: str) -> None:
        """Apply the works that a member missed while it was down, up to the position of the other members."""
        partition = keys.shard_of(name)
        offset, end = self._missed_from[name], self._taken[partition]
        while offset < end:
            batch = await self._log.read(topics.WORKS, partition, offset, min(log_reading.READ, end - offset))
            await self._apply(
                [record for record in batch if record.key == name and self._valid_works.is_valid(record)]
            )
            offset = port.offset_after(batch, end)
            await asyncio.sleep(0)
        del self._missed_from[name]

    async def _apply(self, batch: list[StoredRecord]) -> None:
        decoded = [(record, *work) for record in batch if (work := log_reading.work_in(record)) is not None]
        now_ms = self._clock_ms()
        workloads = [recovery.MemberWorkload(record.key, work.key) for record, work, _ in decoded]
        await self._unrestored.restore(self._states, workloads, now_ms)
        running = recovery.running_templates(self._states, workloads)
        contents = await self._contents.read([work for _, work, _ in decoded], running)
        await self._unrestored.restore_around(
            self._states, {record.key for record in batch}, contents.templates(), now_ms
        )
        for record, work, head in decoded:
            applied, template, fault = contents.of(work)
            cause = log_reading.cause_of(record, head)
            self._take_writes(record.key, record.number)
            state = self._states[record.key]
            cluster.apply_work(state, applied, now_ms, template=template, cause=cause, fault=fault)
            self._touched[record.key] = None

    async def restore_all(self) -> None:
        """Restore now all workloads that would be restored by later works, so that later turns cost less."""
        await self._unrestored.restore_all(self._states, self._states, self._clock_ms())

    async def _follow_clusters(self, end: int) -> None:
        """Record which members have joined or left; a member that has left does not report."""
        while self._clusters_taken < end:
            start = self._clusters_taken
            batch = await self._log.read(topics.CLUSTERS, 0, start, min(log_reading.READ, end - start))
            for record in batch:
                if (state := self._states.get(record.key)) is not None:
                    self._follow_cluster(state, record)
                    if (write := log_reading.undecoded_write_in(record)) is not None:
                        await self._unrestored.restore_all(self._states, [record.key], self._clock_ms())
                        self._writes.add(record.key, write)
            self._clusters_taken = port.offset_after(batch, end)

    def _follow_cluster(self, state: MemberState, record: StoredRecord) -> None:
        if attributes.get(record, "type") not in _FOLLOWED:
            return
        match codec.event_of(record):
            case clusters.ClusterJoined() as joined:
                reports.set_joined(state, joined=True)
                state.faults.unreachable = not faults.is_reachable(joined)
                self._mark_cut_off(record.key)
            case clusters.ClusterLeft():
                reports.set_joined(state, joined=False)
            case clusters.ClusterHealthChanged(ready=ready) if ready != state.reported_ready:
                # Another reporter has overwritten the report of the member, so the member reports again.
                state.reported_ready = ready
            case _:
                return
        self._touched[record.key] = None

    def _mark_cut_off(self, name: str) -> None:
        """If a member is cut off, store the offset from which it has to read works once it is healed."""
        if self._states[name].faults.cut_off:
            self._missed_from.setdefault(name, self._taken[keys.shard_of(name)])

    def _take_writes(self, name: str, before: int) -> None:
        """Carry out the writes of a member's clients whose records have lower numbers than ``before``."""
        if self._writes.carry_out(self._states[name], before):
            self._touched[name] = None

    def _selected(self, member: str | None) -> Iterator[MemberState]:
        names = sorted(self._states) if member is None else [self.state_of(member).spec.name]
        return (self._states[name] for name in names)
