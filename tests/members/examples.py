"""Small members, works for them, and a minimal control plane with hand-written works."""

from typing import Final

from engine.log.local import MemoryLog
from engine.simulation import member_fleet, specs, state
from engine.simulation.reports import SHIFT_MS, SOURCE
from engine.works import templates
from events import clusters, codec, health, keys, records, shapes, times, topics, works
from events.json_values import Json
from events.records import Envelope
from tests.builders import inputs, manifests
from tests.builders.manifests import raw
from tests.projections.logs import RecordBuilder

START_MS: Final = times.from_text("2024-05-25T09:49:51Z")
STARTUP_MS: Final = 200

Report = health.WorkloadReported | health.WorkloadGone


def member(name: str = "member1", *, startup_ms: int = STARTUP_MS, **room: str) -> specs.MemberSpec:
    """Return a member with one node; by default capacity for ten pods, 1 cpu and 1Gi of memory."""
    allocatable = {"cpu": "1", "memory": "1Gi", "pods": "10"} | room
    nodes = (specs.NodeGroup(count=1, allocatable=allocatable),)
    return specs.MemberSpec(name=name, nodes=nodes, startup_ms=startup_ms)


def new_state(*, startup_ms: int = STARTUP_MS, **room: str) -> state.MemberState:
    """Return the state of a member that has joined and runs nothing."""
    fresh = state.initial_state(member(startup_ms=startup_ms, **room))
    fresh.joined = True
    return fresh


def key_of(name: str, kind: str = "Deployment") -> str:
    """Return the key of a workload in the namespace default."""
    return keys.binding_key(kind, "default", name)


def ref(name: str, kind: str = "Deployment") -> shapes.WorkloadRef:
    """Return the reference of a workload in the namespace default."""
    version = {
        "Deployment": "apps/v1",
        "StatefulSet": "apps/v1",
        "Job": "batch/v1",
        "CronJob": "batch/v1",
    }.get(kind, "v1")
    return shapes.WorkloadRef(api_version=version, kind=kind, name=name, namespace="default")


def applied(
    name: str,
    replicas: int | None,
    *,
    step: int = 1,
    cluster: str = "member1",
    kind: str = "Deployment",
    offset: int = 0,
    overrides: tuple[shapes.OverrideRef, ...] = (),
) -> works.WorkApplied:
    """Return the work to run ``replicas`` of a workload."""
    key = key_of(name, kind)
    return works.WorkApplied(
        cluster=cluster,
        key=key,
        template=ref(name, kind),
        shard=keys.shard_of(key),
        offset=offset,
        digest=f"digest-{offset}",
        term=1,
        step=step,
        replicas=replicas,
        overrides=overrides,
    )


def removed(
    name: str, *, step: int = 2, cluster: str = "member1", preserved: bool = False
) -> works.WorkRemoved:
    """Return the work to remove a Deployment."""
    return works.WorkRemoved(cluster=cluster, key=key_of(name), term=1, step=step, preserved=preserved)


def suspended(name: str, *, step: int = 2, cluster: str = "member1") -> works.WorkSuspended:
    """Return the work to leave a Deployment unchanged."""
    return works.WorkSuspended(cluster=cluster, key=key_of(name), term=1, step=step)


def template(*, image: str = "nginx", **requests: str) -> templates.Template:
    """Return the pod template of a Deployment named nginx."""
    return templates.read(raw(manifests.deployment("nginx", image=image, requests=requests)))


class Stage:
    """A log, a manual clock and members; works are written by hand."""

    def __init__(self, *members: specs.MemberSpec, log: MemoryLog | None = None) -> None:
        self.now_ms = START_MS
        self.log = log or MemoryLog()
        self.specs = members or (member(),)
        self.members = member_fleet.Members(self.log, lambda: self.now_ms, self.specs)
        self._written = 0
        self._builder = RecordBuilder()

    def restarted(self) -> "Stage":
        """Return a stage with the same log and time and new members, as after a crash; do not use the old one."""
        stage = Stage(*self.specs, log=self.log)
        stage.now_ms = self.now_ms
        stage._written = self._written
        stage._builder = self._builder
        return stage

    async def template(self, name: str, replicas: int, *, image: str = "nginx", **requests: str) -> int:
        """Apply a template, and return its offset."""
        manifest = manifests.deployment(name, replicas, "default", image=image, requests=requests)
        return await self.submit_template(manifest, key_of(name))

    async def submit_template(self, manifest: Json, key: str) -> int:
        """Apply a template of any kind, and return its offset."""
        return (await self._write(inputs.applied(manifest), key)).offset

    async def work(self, *output_works: works.WorkApplied | works.WorkRemoved | works.WorkSuspended) -> None:
        """Append works, each in a step of a shard."""
        self._builder.at_ms = self.now_ms
        for work in output_works:
            await self.log.append(self._builder.step(0, [work]))

    async def submit(self, data: shapes.Event, cluster: str) -> None:
        """Append an input about a cluster."""
        await self._write(data, cluster)

    async def turn(self, *, after_ms: int = 0) -> list[shapes.Event]:
        """Advance the time, run the members, and return their events."""
        self.now_ms += after_ms
        before = self.log.last_number()
        await self.members.turn()
        return await self.events_since(before)

    async def events_since(self, number: int) -> list[shapes.Event]:
        """Return the members' events after a number of the log."""
        events = map(_event_of, await self.log.read_all(number, 10_000))
        return [data for data in events if data is not None]

    async def settle(self) -> None:
        """Run the members until all replicas are ready and reported."""
        await self.turn()
        await self.turn(after_ms=STARTUP_MS)
        await self.turn(after_ms=SHIFT_MS)

    async def _write(self, data: shapes.Event, key: str) -> records.StoredRecord:
        self._written += 1
        head = Envelope(
            id=f"written-{self._written}", source="/tests", type="", time=times.to_text(self.now_ms)
        )
        topic = data.event_type.topic
        partition = keys.shard_of(key) if topics.TOPICS[topic].sharded else 0
        (stored,) = await self.log.append([codec.encode(data, head, partition=partition, key=key)])
        return stored


def reports(events: list[shapes.Event]) -> list[Report]:
    """Return the reports about workloads."""
    return [event for event in events if isinstance(event, health.WorkloadReported | health.WorkloadGone)]


def ready(events: list[shapes.Event]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return ready and total replicas, by cluster and workload key."""
    return {
        (event.cluster, event.key): (event.ready, event.replicas)
        for event in events
        if isinstance(event, health.WorkloadReported)
    }


def capacity(events: list[shapes.Event]) -> clusters.CapacityReported:
    """Return the only capacity report among these events."""
    (report,) = [event for event in events if isinstance(event, clusters.CapacityReported)]
    return report


def shown(stage: Stage) -> dict[tuple[str, str], tuple[int, int]]:
    """Return ready and total replicas as the members show them, by cluster and workload key."""
    return {
        (workload.cluster, workload.key): (workload.ready, workload.replicas)
        for workload in stage.members.workloads()
    }


def _event_of(record: records.StoredRecord) -> shapes.Event | None:
    decoded = codec.decode(record)
    if not isinstance(decoded, codec.Decoded) or not decoded.envelope.source.startswith(SOURCE):
        return None
    return decoded.data
