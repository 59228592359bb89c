"""Given-when-then tests of the whole engine on an in-memory log, with a clock that only the test advances.

A story appends inputs and reads the consequences from the log. No part of the engine is replaced by a mock;
only members are absent, so the story appends their reports itself.
"""

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from engine.deciders.state import Binding
from engine.log import local, port
from engine.reconcilers import worker
from events import codec, decisions, health, keys, kube_objects, records, shapes, topics, works
from events.records import Envelope
from events.times import from_text, to_text
from events.validation import verdicts
from tests.builders.inputs import capacity, joined

START_MS = from_text("2026-01-01T00:00:00Z")
_TURNS_MAX = 200
_EventT = TypeVar("_EventT", bound=shapes.Event)


class Running(Struct, frozen=True):
    """The newest work of a cluster: its replicas (None for kinds without) and version."""

    replicas: int | None
    term: int
    step: int
    suspended: bool = False


class Raced(local.MemoryLog):
    """In-memory log that appends foreign records (``first``) just before the next batch, to provoke a race."""

    def __init__(self) -> None:
        super().__init__()
        self.first: list[records.Record] = []

    async def append(self, batch: Sequence[records.Record]) -> list[records.StoredRecord]:
        first, self.first = self.first, []
        await super().append(first)
        return await super().append(batch)


def busy_keys(owner: worker.Worker, now_ms: int) -> str:
    """Name the keys that the next steps will decide again."""
    busy: set[str] = set()
    for fold in owner.folds:
        state = fold.state
        busy |= state.waiting.keys() | state.reported.keys() | state.touched.keys()
        timed = (*state.bindings.values(), *state.rebalancers.values(), *state.watches.values())
        busy |= {holder.key for holder in timed if 0 < holder.timer_ms <= now_ms}
    return f"keys that wait or are due: {', '.join(sorted(busy)) or 'none'}"


class Story:
    """A test of the engine: ``submit`` inputs, ``pass_s`` time, ``restart``, then query the decisions."""

    def __init__(self, log: port.NumberedLog | None = None) -> None:
        self.log = log or Raced()
        self.now_ms = START_MS
        self.refused = 0
        """Number of inputs that the story expects to be refused."""
        self.worker = worker.Worker(self.log, self.clock)
        self._written = 0

    def clock(self) -> int:
        """Return the virtual time in milliseconds since 1970."""
        return self.now_ms

    async def submit(self, *inputs: shapes.Event) -> None:
        """Append these inputs in one batch and run the worker until it is idle."""
        await self.write(*inputs)
        await self.settle()

    async def join(self, *names: str) -> None:
        """Submit that these clusters join, and their capacities."""
        await self.submit(*map(joined, names), *map(capacity, names))

    async def write(self, *inputs: shapes.Event) -> None:
        """Append these inputs without running the worker."""
        await self.log.append([self.record(data) for data in inputs])

    def write_first(self, *inputs: shapes.Event) -> None:
        """Append these inputs between the worker's next read and its next append."""
        assert isinstance(self.log, Raced)
        self.log.first = [self.record(data) for data in inputs]

    async def settle(self) -> None:
        """Run turns until the worker is idle; raises AssertionError after too many turns."""
        for _ in range(_TURNS_MAX):
            turn = await self.worker.turn()
            if not turn.steps and not self.worker.is_behind():
                return
        raise AssertionError(f"the engine does not become idle; {busy_keys(self.worker, self.now_ms)}")

    async def pass_ms(self, count: int) -> None:
        """Advance the clock; each timer fires at its due time."""
        end_ms = self.now_ms + count
        while (due_ms := self.worker.next_timer_ms()) is not None and due_ms <= end_ms:
            self.now_ms = max(self.now_ms, due_ms)
            await self.settle()
        self.now_ms = end_ms
        await self.settle()

    async def pass_s(self, seconds: int) -> None:
        """Advance the clock by seconds; each timer fires at its due time."""
        await self.pass_ms(seconds * 1000)

    async def restart(self) -> None:
        """Replace the worker by a new one that recovers from the log."""
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
        """Append a workload report of a cluster about its newest work (or an older one, ``of``)."""
        work = of or (await self.running(key))[cluster]
        replicas = work.replicas or 0
        ready = (replicas if healthy else 0) if ready is None else ready
        report = health.WorkloadReported(
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
        await self.submit(report)

    async def confirm_removal(self, key: str, cluster: str) -> None:
        """Append the report of a cluster that the workload of its newest removal is gone."""
        removed = [
            removal for removal in await self.recorded(works.WorkRemoved, cluster) if removal.key == key
        ]
        version = removed[-1].term, removed[-1].step
        await self.submit(health.WorkloadGone(cluster=cluster, key=key, term=version[0], step=version[1]))

    def binding(self, key: str) -> Binding:
        """Return the worker's binding with this key."""
        return self.worker.folds[keys.shard_of(key)].state.bindings[key]

    def is_known(self, key: str) -> bool:
        """Whether the worker still has a binding with this key."""
        return key in self.worker.folds[keys.shard_of(key)].state.bindings

    def placed(self, key: str) -> dict[str, int]:
        """Return the replicas of a binding by cluster, as scheduled."""
        return dict(self.binding(key).clusters)

    async def recorded(self, kind: type[_EventT], subject: str = "") -> list[_EventT]:
        """Return all events of a type in the log, in order, optionally those about one key, cluster or name."""
        events: list[_EventT] = []
        topic, of = kind.event_type.topic, kind.event_type.type
        for record in await self.log.read_all(0, self.log.last_number()):
            if record.topic != topic or record.headers["ce_type"] != of:
                continue
            decoded = codec.decode(record)
            if isinstance(decoded, codec.Decoded) and isinstance(decoded.data, kind):
                names = (getattr(decoded.data, field, "") for field in ("key", "cluster", "name"))
                if not subject or subject in names:
                    events.append(decoded.data)
        return events

    async def steps(self) -> int:
        """Return the number of steps of all shards."""
        return len(await self.recorded(decisions.StepTaken))

    async def running(self, key: str) -> dict[str, Running]:
        """Return the newest work of a binding by cluster, from the topic works alone."""
        newest: dict[str, Running] = {}
        for record in await self.log.read_all(0, self.log.last_number()):
            if record.topic != topics.WORKS:
                continue
            decoded = codec.decode(record)
            match decoded.data if isinstance(decoded, codec.Decoded) else None:
                case works.WorkApplied() as work if work.key == key:
                    newest[work.cluster] = Running(work.replicas, work.term, work.step)
                case works.WorkRemoved() as work if work.key == key:
                    newest.pop(work.cluster)
                case works.WorkSuspended() as work if work.key == key:
                    last = newest.get(work.cluster, Running(None, work.term, work.step))
                    newest[work.cluster] = Running(last.replicas, last.term, last.step, suspended=True)
                case _:
                    pass
        return newest

    async def replicas(self, key: str) -> dict[str, int | None]:
        """Return the replicas that the works of a binding assign, by cluster."""
        return {cluster: work.replicas for cluster, work in (await self.running(key)).items()}

    def record(self, data: shapes.Event) -> records.Record:
        self._written += 1
        body = getattr(data, "manifest", None)
        key = verdicts.key_of(data, None if body is None else kube_objects.read_head(body))
        topic = data.event_type.topic
        head = Envelope(id=f"said-{self._written}", source="/story", type="", time=to_text(self.now_ms))
        partition = keys.partition_of(key, topics.TOPICS[topic].partitions)
        return codec.encode(data, head, partition=partition, key=key)
