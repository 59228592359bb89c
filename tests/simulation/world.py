"""One simulated installation: a log that fails on demand, the worker, the members, and a clock that is a number."""

import random
from collections.abc import Sequence

from engine.log import memory, port
from engine.members import defaults, fleet, specs
from engine.reconcilers import keepers, worker
from events import codec, shapes
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


class FaultyLog(memory.MemoryLog):
    """A log in memory whose appends fail when they are told to: before anything was written, or after all was."""

    def __init__(self) -> None:
        super().__init__()
        self.failing = ""

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        failing, self.failing = self.failing, ""
        if failing == "before":
            raise port.LogError("the disk is full")
        stored = await super().append(batch)
        if failing == "after":
            raise port.OutcomeUnknownError("no answer came")
        return stored


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

    def __init__(self, seed: int, members: Sequence[specs.MemberSpec] = MEMBERS) -> None:
        self._specs = members
        self.chance = random.Random(seed)  # noqa: S311  # a run to be repeated, not a secret
        self.log = FaultyLog()
        self.now_ms = START_MS
        self.kept = Kept()
        self.worker = worker.Worker(self.log, self.clock, places=keepers.OnePlace(self.kept))
        self.members = fleet.Members(self.log, self.clock, members)
        self.said = 0
        self.crashes = 0

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
            await one.recover()

    async def crash(self) -> None:
        """The process dies, and another begins with nothing but the log and the snapshots."""
        self.crashes += 1
        self.worker = worker.Worker(self.log, self.clock, places=keepers.OnePlace(self.kept))
        self.members = fleet.Members(self.log, self.clock, self._specs)
        await self.start()

    async def settle(self, horizon_ms: int = 900_000) -> None:
        """Runs until there is nothing to do before the horizon; raises AssertionError where that never comes."""
        end_ms = self.now_ms + horizon_ms
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
