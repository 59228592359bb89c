"""A Kubernetes API in memory, without a server: tests in virtual time decide what it serves and when."""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec

from engine.agent.discovery import Resource
from engine.agent.member_api import Change, Listed, MemberApi
from engine.log import port
from engine.observer.observer import Observer
from engine.observer.report import Report
from events import observations, topics
from events.json_values import Json
from events.kube_objects import KubeObject
from tests import recordings
from tests.background import background
from tests.observer import synthetic
from tests.observer.observing import observed


def kind(api_version: str, name: str, *, watched: bool = True) -> Resource:
    """Return a kind of namespaced objects."""
    return Resource(
        api_version=api_version, kind=name, plural=f"{name.lower()}s", namespaced=True, watched=watched
    )


CLUSTERS = kind("cluster.karmada.io/v1alpha1", "Cluster")
BINDINGS = kind("work.karmada.io/v1alpha2", "ResourceBinding")
ROLE_BINDINGS = kind("work.karmada.io/v1alpha2", "ClusterResourceBinding")
NAMESPACES = kind("v1", "Namespace")
DECIDED_ON = (CLUSTERS, BINDINGS, ROLE_BINDINGS)
DOUBT_S = 2.0
"""Seconds that an unexplained decision waits for changes of clusters."""


class MemoryApi:
    """The objects of the kinds ``served``; each change is passed to the watches of its kind."""

    def __init__(self, *served: Resource) -> None:
        self.served = list(served)
        self.discoveries = 0
        self.lists: list[str] = []
        """The kinds that were listed."""
        self.faults: list[Exception] = []
        """Errors of the next discoveries."""
        self.get_fault: Exception | None = None
        self._changes: list[Change] = []
        self._changed = asyncio.Event()
        self._restores = 0

    def play(self, changes: Iterable[recordings.Change]) -> None:
        """Make changes of objects."""
        for change in changes:
            self._changes.append(Change(change.type, KubeObject.from_json(change.manifest)))
        self._changed.set()
        self._changed = asyncio.Event()

    def restore(self, count: int) -> None:
        """Go back to the first changes, as to a backup of etcd, and end all watches."""
        del self._changes[count:]
        self._restores += 1
        self.play([])

    async def discover(self) -> list[Resource]:
        self.discoveries += 1
        if self.faults:
            raise self.faults.pop(0)
        return list(self.served)

    async def newest_version(self, _resource: Resource) -> str:
        return self._version

    async def get(self, resource: Resource, _namespace: str, name: str) -> KubeObject | None:
        if self.get_fault is not None:
            raise self.get_fault
        return next((value for value in _objects(self._changes, resource) if value.name == name), None)

    async def list(self, resource: Resource, labels: str = "") -> Listed:
        assert not labels
        self.lists.append(resource.kind)
        return Listed(_objects(self._changes, resource), self._version)

    async def watch(self, resource: Resource, version: str, labels: str = "") -> AsyncGenerator[Change]:
        assert not labels
        at, restores = 0, self._restores
        while restores == self._restores:
            changed = self._changed
            changes, at = self._changes[at:], len(self._changes)
            for change in changes:
                if _is_of(change, resource) and int(change.object.resource_version) > int(version):
                    yield change
            await changed.wait()

    @property
    def _version(self) -> str:
        return self._changes[-1].object.resource_version if self._changes else "0"


def _objects(changes: Iterable[Change], resource: Resource) -> list[KubeObject]:
    newest = {change.object.key: change for change in changes if _is_of(change, resource)}
    return [change.object for change in newest.values() if change.type != "DELETED"]


def _is_of(change: Change, resource: Resource) -> bool:
    return change.object.type_meta == (resource.api_version, resource.kind)


@asynccontextmanager
async def observing(
    api: MemoryApi, log: port.NumberedLog, report: Report | None = None
) -> AsyncGenerator[Observer]:
    """Observe an API until the block ends."""
    clock_ms = itertools.count(1_000)
    observer = Observer(cast("MemberApi", api), log, "/observed/test", lambda: next(clock_ms), report=report)
    async with background(observer.run()):
        yield observer


async def settle(seconds: float = 0.5) -> None:
    """Let the observer append the changes that it has received."""
    await asyncio.sleep(seconds)


async def shown(log: port.NumberedLog) -> list[tuple[str, int]]:
    """Kind and version of each change in the log, and verdict and version of each comparison."""
    shown_events: list[tuple[str, int]] = []
    for data in await observed(log):
        match data:
            case observations.ObjectObserved() | observations.ObjectVanished():
                shown_events.append((data.kind, data.version))
            case observations.DecisionCompared():
                shown_events.append((data.verdict, data.version))
            case _:
                shown_events.append((type(data).__name__, 0))
    return shown_events


async def repeated_ids(log: port.NumberedLog) -> list[bytes | str]:
    records = await log.read(topics.OBSERVATIONS, 0, 0, 10_000)
    return [
        name for name, count in Counter(record.headers["ce_id"] for record in records).items() if count > 1
    ]


def plane_with_clusters() -> synthetic.ControlPlane:
    plane = synthetic.ControlPlane()
    for name in ("east", "west"):
        plane.join(name)
    return plane


def cluster(name: str, version: int) -> recordings.Change:
    plane = synthetic.ControlPlane()
    plane.join(name)
    (joined,) = plane.changes
    value = msgspec.json.decode(joined.manifest, type=dict[str, Any])
    value["metadata"] |= {"uid": name, "resourceVersion": str(version)}
    return recordings.change("ADDED", value)


def namespace(name: str, version: int, uid: str = "") -> Json:
    metadata = {"name": name, "uid": uid or name, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def doubtful() -> tuple[list[recordings.Change], recordings.Change, list[recordings.Change]]:
    """Return changes, one that the observer receives late, and the decision that follows from it."""
    plane = plane_with_clusters()
    plane.bind("ClusterResourceBinding", "reader")
    began = len(plane.changes)
    plane.begin_leaving("east")
    late, *decision = plane.changes[began:]
    return plane.changes[:began], late, decision
