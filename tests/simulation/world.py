"""A simulated installation: an in-memory log that fails on demand, worker, members, and a virtual clock."""

import random
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from engine.log import local, port
from engine.reconcilers import snapshot_storage, worker
from engine.simulation import defaults, member_fleet, reports, specs
from events import clusters, codec, health, shapes
from events.records import Envelope, Record, StoredRecord
from events.times import to_text
from tests.builders.manifests import CONFIG_MAP, DEPLOYMENT, Kind
from tests.deciders import story

START_MS = 1_767_225_600_000
_TURNS_MAX = 3_000

MEMBERS = [
    specs.MemberSpec(
        name=f"member{index}",
        nodes=(specs.NodeGroup(count=1, allocatable={"cpu": str(4 * index), "memory": "8Gi", "pods": "20"}),),
        labels={"zone-class": "edge" if index % 2 else "core"},
        apis=defaults.APIS[: -1 if index == 4 else None],
        startup_ms=50,
    )
    for index in range(1, 5)
]
"""Members; small enough that workloads sometimes do not fit."""


class Scope(Struct, frozen=True, kw_only=True):
    """The values from which random moves choose: kinds, names of templates and policies, sizes of workloads.

    A kind that occurs several times is chosen more often. ``selects``: the kinds that policies select.
    ``is_grouped``: placements may keep workloads together or apart.
    ``is_varied``: placements may have spread constraints, static weights, or groups with overflow.
    """

    kinds: tuple[str, ...] = ("Deployment", "Deployment", "ConfigMap")
    workloads: tuple[str, ...] = ("api", "db", "web")
    policies: tuple[str, ...] = ("p1", "p2")
    replicas: tuple[int, ...] = (0, 1, 3, 5, 8, 13)
    requests: tuple[dict[str, str], ...] = ({"cpu": "100m"}, {"cpu": "2", "memory": "1Gi"}, {})
    selects: tuple[Kind, ...] = (DEPLOYMENT, CONFIG_MAP)
    is_grouped: bool = False
    is_varied: bool = False


EDITS = Scope()

_DELAYED = {
    data_type.event_type.type
    for data_type in (
        clusters.CapacityReported,
        clusters.ClusterHealthChanged,
        health.WorkloadGone,
        health.WorkloadReported,
    )
}
"""Event types whose delivery can be delayed."""


class FaultyLog(local.MemoryLog):
    """In-memory log whose appends fail on demand, either before anything is written or after everything is.

    Reports of ``slow`` members are kept in ``held`` and delivered later, although their sender sees them as
    written.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failing = ""
        self.slow: set[str] = set()
        self.held: list[Record] = []

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        failing, self.failing = self.failing, ""
        if failing == "before":
            raise port.LogError("the disk is full")
        late = [record for record in batch if self._is_late(record)]
        self.held += late
        stored = await super().append([record for record in batch if record not in late] if late else batch)
        if failing == "after":
            raise port.OutcomeUnknownError("no answer came")
        return stored

    async def arrive(self, chance: random.Random, count: int) -> None:
        """Deliver this many held reports in random order; reports of one member about one key keep their order."""
        queues: dict[tuple[str, str], list[Record]] = {}
        for record in self.held:
            queues.setdefault((record.headers["ce_source"], record.key), []).append(record)
        arrived: list[Record] = []
        while queues and len(arrived) < count:
            slot = chance.choice(list(queues))
            arrived.append(queues[slot].pop(0))
            if not queues[slot]:
                del queues[slot]
        self.held = [record for queue in queues.values() for record in queue]
        await super().append(arrived)

    def _is_late(self, record: Record) -> bool:
        member = record.headers.get("ce_source", "").removeprefix(reports.SOURCE)
        return member in self.slow and record.headers["ce_type"] in _DELAYED


class MemorySnapshots:
    """In-memory snapshot store whose snapshots can be deleted or damaged."""

    def __init__(self) -> None:
        self.snapshots: dict[int, bytes] = {}

    def numbers(self) -> list[int]:
        return sorted(self.snapshots, reverse=True)

    def read(self, number: int) -> bytes:
        return self.snapshots[number]

    def write(self, number: int, parts: Sequence[bytes]) -> None:
        self.snapshots[number] = b"".join(parts)

    def drop(self, number: int) -> None:
        self.snapshots.pop(number, None)

    def damage(self, number: int, at: int) -> None:
        """Flip one bit."""
        damaged = bytearray(self.snapshots[number])
        damaged[at % len(damaged)] ^= 1
        self.snapshots[number] = bytes(damaged)


class World:
    """The simulated installation, with methods that advance it."""

    def __init__(
        self,
        seed: int,
        members: Sequence[specs.MemberSpec] = MEMBERS,
        scope: Scope = EDITS,
    ) -> None:
        self.specs = members
        self.scope = scope
        self.chance = random.Random(seed)  # noqa: S311  # a run to be repeated, not a secret
        self.log = FaultyLog()
        self.now_ms = START_MS
        self.kept = MemorySnapshots()
        self._renew_worker()
        self._renew_members()
        self.said = 0
        self.crashes = 0
        self.rested_ms = START_MS
        """Time of the last rest up to which nothing was left to do."""

    @property
    def names(self) -> list[str]:
        """All member names, joined or not."""
        return [spec.name for spec in self.specs]

    def clock(self) -> int:
        return self.now_ms

    async def start(self) -> None:
        await self.worker.recover()
        await self.members.recover()

    async def submit(
        self, data: shapes.Event, key: str, partition: int, *, event_id: str = ""
    ) -> StoredRecord:
        """Append an input as a producer does."""
        self.said += 1
        head = Envelope(
            id=event_id or f"said-{self.said}", source="/simulation", type="", time=to_text(self.now_ms)
        )
        (stored,) = await self.log.append([codec.encode(data, head, partition=partition, key=key)])
        return stored

    async def turn(self) -> None:
        """Run one turn of the worker or the members; after a failed append, recover."""
        participant = self.worker if self.chance.random() < 0.6 else self.members
        try:
            await participant.turn()
        except port.LogError:
            await self._end_reports()
            await participant.recover()

    async def crash(self) -> None:
        """Restart worker and members from the log and the snapshots."""
        self.crashes += 1
        await self._end_reports()
        self._renew_worker()
        self._renew_members()
        await self.start()

    async def worker_dies(self) -> None:
        """Restart the worker from the log and the snapshots; the members keep their state."""
        self._renew_worker()
        await self.worker.recover()

    async def members_die(self) -> None:
        """Restart the members from the log; the worker keeps its state."""
        await self._end_reports()
        self._renew_members()
        await self.members.recover()

    async def pass_ms(self, count: int) -> None:
        """Advance the clock; each timer fires at its due millisecond."""
        end_ms = self.now_ms + count
        await self._run(end_ms)
        self.now_ms = end_ms

    async def settle(self, horizon_ms: int = 900_000) -> None:
        """Run until nothing is due before the horizon; raises AssertionError if that is never reached."""
        end_ms = self.now_ms + horizon_ms
        await self._run(end_ms)
        self.rested_ms = end_ms

    def running(self) -> dict[tuple[str, str], int]:
        """Return the replicas of each managed workload by cluster and key.

        A rollout that waits for capacity runs former pods beside the new ones, and pods of a Job end; then the replicas
        that it works towards.
        """
        replicas: dict[tuple[str, str], int] = {}
        for entry in self.members.workloads():
            if entry.preserved:
                continue
            workload = self.members.state_of(entry.cluster).workloads.get(entry.key)
            is_partial = workload is not None and (workload.outdated or workload.ref.kind == "Job")
            replicas[entry.cluster, entry.key] = (
                workload.replicas if workload and is_partial else entry.replicas
            ) or 0
        return replicas

    def _renew_worker(self) -> None:
        self.worker = worker.Worker(
            self.log, self.clock, storage=snapshot_storage.SingleSnapshotStorage(self.kept)
        )

    def _renew_members(self) -> None:
        self.members = member_fleet.Members(self.log, self.clock, self.specs)

    async def _end_reports(self) -> None:
        """Delayed reports of a process that ends are delivered before its successor starts, or lost."""
        if self.chance.random() < 0.5:
            await self.log.arrive(self.chance, len(self.log.held))
        self.log.held.clear()

    async def _run(self, end_ms: int) -> None:
        for _ in range(_TURNS_MAX):
            await self.worker.turn()
            await self.members.turn()
            if self.worker.is_behind() or self.members.is_behind():
                continue
            dues = [
                due for due in (self.worker.next_timer_ms(), self.members.next_timer_ms()) if due is not None
            ]
            if not dues or min(dues) > end_ms:
                return
            self.now_ms = max(self.now_ms, min(dues))
        busy = story.busy_keys(self.worker, self.now_ms)
        raise AssertionError(f"the world does not become stable; {busy}")


Move = Callable[[World], Awaitable[str]]
"""Changes a world and returns a one-line description."""
