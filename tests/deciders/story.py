"""Given, when, then: a whole engine on a log in memory, whose clock stands still until a story moves it.

A story is told in inputs; what follows from them is read from the log, as everybody else reads it. Nothing stands in
for a part of the engine. Only the members are silent: a story says itself what they report.
"""

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from engine.deciders.state import Binding
from engine.log import memory, port
from engine.reconcilers import worker
from events import (
    catalogue,
    codec,
    decisions,
    health,
    keys,
    objects,
    partitioning,
    records,
    shapes,
    topics,
    verdicts,
    works,
)
from events.envelope import Envelope
from events.times import from_text, to_text

START_MS = from_text("2026-01-01T00:00:00Z")
_TURNS_MAX = 200
_EventT = TypeVar("_EventT", bound=shapes.Event)


class Running(Struct, frozen=True):
    """What a cluster was told last: replicas (None for kinds without), and the version of that."""

    replicas: int | None
    term: int
    step: int
    suspended: bool = False


class Raced(memory.MemoryLog):
    """A log in memory to which somebody else's records can be appended just before the next ones."""

    def __init__(self) -> None:
        super().__init__()
        self.first: list[records.Record] = []

    async def append(self, batch: Sequence[records.Record]) -> list[records.StoredRecord]:
        first, self.first = self.first, []
        await super().append(first)
        return await super().append(batch)


class Story:
    """``say`` what happens, let time ``pass_s``, ``restart``; then ask what was decided."""

    def __init__(self, log: port.NumberedLog | None = None) -> None:
        self.log = log or Raced()
        self.now_ms = START_MS
        self.refused = 0
        """How many inputs of the story are meant to be refused."""
        self.worker = worker.Worker(self.log, self.clock)
        self._said = 0

    def clock(self) -> int:
        """Milliseconds since 1970."""
        return self.now_ms

    async def say(self, *said: shapes.Event) -> None:
        """These inputs come in, together, and everything that follows from them at once is decided."""
        await self.write(*said)
        await self.settle()

    async def write(self, *said: shapes.Event) -> None:
        """These inputs come into the log; nobody looks at them yet."""
        await self.log.append([self.record(data) for data in said])

    def write_first(self, *said: shapes.Event) -> None:
        """These inputs come into the log after the engine has looked, and before it has written."""
        assert isinstance(self.log, Raced)
        self.log.first = [self.record(data) for data in said]

    async def settle(self) -> None:
        """Takes turns until there is nothing to do; raises AssertionError where that never comes."""
        for _ in range(_TURNS_MAX):
            turn = await self.worker.turn()
            if not turn.steps and not self.worker.is_behind():
                return
        raise AssertionError("the engine does not come to rest")

    async def pass_ms(self, count: int) -> None:
        """Time goes by; what is due meanwhile happens at its time."""
        end_ms = self.now_ms + count
        while (due_ms := self.worker.next_timer_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            await self.settle()
        self.now_ms = end_ms
        await self.settle()

    async def pass_s(self, seconds: int) -> None:
        """Time goes by."""
        await self.pass_ms(seconds * 1000)

    async def restart(self) -> None:
        """The process dies; another one begins with nothing but the log."""
        self.worker = worker.Worker(self.log, self.clock)
        await self.worker.recover()
        await self.settle()

    async def report(
        self,
        key: str,
        cluster: str,
        *,
        healthy: bool = True,
        ready: int | None = None,
        of: Running | None = None,
        fault: str = "",
        values: dict[str, str] | None = None,
    ) -> None:
        """A cluster reports that it runs what it was told last (or ``of`` an older work), or its ``fault``."""
        work = of or (await self.running(key))[cluster]
        replicas = work.replicas or 0
        ready = (replicas if healthy else 0) if ready is None else ready
        said = health.WorkloadReported(
            cluster=cluster,
            key=key,
            term=work.term,
            step=work.step,
            replicas=replicas,
            updated=replicas,
            ready=ready,
            available=ready,
            healthy=healthy,
            fault=fault,
            values=values or {},
        )
        await self.say(said)

    def binding(self, key: str) -> Binding:
        """The binding as the engine holds it."""
        return self.worker.folds[keys.shard_of(key)].state.bindings[key]

    def is_known(self, key: str) -> bool:
        """Whether anything is left of a binding."""
        return key in self.worker.folds[keys.shard_of(key)].state.bindings

    def placed(self, key: str) -> dict[str, int]:
        """Where a binding is scheduled, and its replicas there."""
        return dict(self.binding(key).clusters)

    async def told(self, kind: type[_EventT], about: str = "") -> list[_EventT]:
        """All events of a type in the log, in order; those about one key, cluster or name."""
        found: list[_EventT] = []
        topic, of = catalogue.BY_STRUCT[kind].topic, catalogue.BY_STRUCT[kind].type
        for record in await self.log.read_all(0, self.log.last_number()):
            if record.topic != topic or record.headers["ce_type"] != of:
                continue
            decoded = codec.decode(record)
            if isinstance(decoded, codec.Decoded) and isinstance(decoded.data, kind):
                names = (getattr(decoded.data, field, "") for field in ("key", "cluster", "name"))
                if not about or about in names:
                    found.append(decoded.data)
        return found

    async def steps(self) -> int:
        """How many steps were taken by all shards."""
        return len(await self.told(decisions.StepTaken))

    async def running(self, key: str) -> dict[str, Running]:
        """What each cluster was told of a binding, by the works alone."""
        found: dict[str, Running] = {}
        for record in await self.log.read_all(0, self.log.last_number()):
            if record.topic != topics.WORKS:
                continue
            decoded = codec.decode(record)
            match decoded.data if isinstance(decoded, codec.Decoded) else None:
                case works.WorkApplied() as work if work.key == key:
                    found[work.cluster] = Running(work.replicas, work.term, work.step)
                case works.WorkRemoved() as work if work.key == key:
                    found.pop(work.cluster)
                case works.WorkSuspended() as work if work.key == key:
                    last = found.get(work.cluster, Running(None, work.term, work.step))
                    found[work.cluster] = Running(last.replicas, last.term, last.step, suspended=True)
                case _:
                    pass
        return found

    async def replicas(self, key: str) -> dict[str, int | None]:
        """The replicas that each cluster was told to run."""
        return {cluster: work.replicas for cluster, work in (await self.running(key)).items()}

    def record(self, data: shapes.Event) -> records.Record:
        self._said += 1
        body = getattr(data, "manifest", None)
        key = verdicts.key_of(data, None if body is None else objects.read(body))
        topic = catalogue.BY_STRUCT[type(data)].topic
        head = Envelope(id=f"said-{self._said}", source="/story", type="", time=to_text(self.now_ms))
        partition = partitioning.partition_of(key, topics.TOPICS[topic].partitions)
        return codec.encode(data, head, partition=partition, key=key)
