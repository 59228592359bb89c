"""One simulated installation: a log that fails on demand, the worker, the members, and a clock that is a number."""

import random
from collections.abc import Sequence

from msgspec import Struct

from engine.log import memory, port
from engine.members import defaults, fleet, specs
from engine.reconcilers import keepers, worker
from events import clusters, codec, health, shapes
from events.envelope import Envelope
from events.records import Record, StoredRecord
from events.times import to_text

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
"""Small enough that things do not fit now and then."""


class Scope(Struct, frozen=True, kw_only=True):
    """What templates and policies are called, which kinds there are and how often, and how large workloads are."""

    kinds: tuple[str, ...] = ("Deployment", "Deployment", "ConfigMap")
    workloads: tuple[str, ...] = ("api", "db", "web")
    policies: tuple[str, ...] = ("p1", "p2")
    replicas: tuple[int, ...] = (0, 1, 3, 5, 8, 13)
    requests: tuple[dict[str, str], ...] = ({"cpu": "100m"}, {"cpu": "2", "memory": "1Gi"}, {})


EDITS = Scope()

_DELAYED = {
    codec.catalogue.BY_STRUCT[each].type
    for each in (
        clusters.CapacityReported,
        clusters.ClusterHealthChanged,
        health.WorkloadGone,
        health.WorkloadReported,
    )
}
"""What members report may be long on its way."""


class FaultyLog(memory.MemoryLog):
    """A log in memory whose appends fail when they are told to: before anything was written, or after all was.

    What ``slow`` members report is ``held`` on its way, where its sender takes it for written.
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
        """So many of the held reports come in, out of order but for what one member says of one thing."""
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
        member = record.headers.get("ce_source", "").removeprefix(fleet.SOURCE)
        return member in self.slow and record.headers["ce_type"] in _DELAYED


class Kept:
    """Snapshots in memory, which can be lost and damaged."""

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
        """One bit falls over."""
        found = bytearray(self.snapshots[number])
        found[at % len(found)] ^= 1
        self.snapshots[number] = bytes(found)


class World:
    """Everything that runs, and the hands to move it."""

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
        self.kept = Kept()
        self._renew_worker()
        self._renew_members()
        self.said = 0
        self.crashes = 0
        self.rested_ms = START_MS
        """Up to here nothing was left to be done when the world came to rest last."""

    @property
    def names(self) -> list[str]:
        """The members, in or out."""
        return [spec.name for spec in self.specs]

    def clock(self) -> int:
        return self.now_ms

    async def start(self) -> None:
        await self.worker.recover()
        await self.members.recover()

    async def say(self, data: shapes.Event, key: str, partition: int, *, event_id: str = "") -> StoredRecord:
        """Appends an input as a producer does."""
        self.said += 1
        head = Envelope(
            id=event_id or f"said-{self.said}", source="/simulation", type="", time=to_text(self.now_ms)
        )
        (stored,) = await self.log.append([codec.encode(data, head, partition=partition, key=key)])
        return stored

    async def turn(self) -> None:
        """One turn of the worker or of the members; a failed append is followed by a recovery."""
        one = self.worker if self.chance.random() < 0.6 else self.members
        try:
            await one.turn()
        except port.LogError:
            await self._end_reports()
            await one.recover()

    async def crash(self) -> None:
        """The process dies, and another begins with nothing but the log and the snapshots."""
        self.crashes += 1
        await self._end_reports()
        self._renew_worker()
        self._renew_members()
        await self.start()

    async def worker_dies(self) -> None:
        """Another worker begins with the log and the snapshots; the members go on with all that they know."""
        self._renew_worker()
        await self.worker.recover()

    async def members_die(self) -> None:
        """The members begin anew with what the log says of them; the worker goes on."""
        await self._end_reports()
        self._renew_members()
        await self.members.recover()

    async def pass_ms(self, count: int) -> None:
        """Time goes by, and each timer fires in its millisecond."""
        end_ms = self.now_ms + count
        await self._run(end_ms)
        self.now_ms = end_ms

    async def settle(self, horizon_ms: int = 900_000) -> None:
        """Runs until there is nothing to do before the horizon; raises AssertionError where that never comes."""
        end_ms = self.now_ms + horizon_ms
        await self._run(end_ms)
        self.rested_ms = end_ms

    def _renew_worker(self) -> None:
        self.worker = worker.Worker(self.log, self.clock, places=keepers.OnePlace(self.kept))

    def _renew_members(self) -> None:
        self.members = fleet.Members(self.log, self.clock, self.specs)

    async def _end_reports(self) -> None:
        """What is on its way from a process that ends comes in before its successor looks, or never."""
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
        raise AssertionError("the world does not come to rest")
