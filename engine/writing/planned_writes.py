"""Writes of a plan: computed and refused like real ones, but collected instead of appended."""

from collections.abc import Sequence

import msgspec
from msgspec import structs

from engine.domain.clusters import joined, with_event
from engine.karmada.default_tolerations import TolerationSeconds
from engine.log import port
from engine.writing import request_origins
from engine.writing.execution import Appending, CurrentObjects, ObjectEvents, WriteExecution
from engine.writing.mutations import Action, Mutated, Mutation, Problem, Target, Written
from events import kube_objects, shapes
from events.clusters import ClusterJoined, ClusterLeft
from events.records import Record
from events.validation.known_kinds import CLUSTER_GROUP
from events.validation.verdicts import Head
from projections import clusters
from projections.objects import StoredObject


class PlannedWrites:
    """A ``write_api.WritePath`` for one plan; ``records`` are those that its changes would append, in order.

    Each change reads the stored objects with the earlier changes of the plan applied.
    """

    def __init__(
        self,
        log: port.NumberedLog,
        current: CurrentObjects,
        appending: Appending,
        tolerated: TolerationSeconds,
    ) -> None:
        self.tolerated = tolerated
        self.records: list[Record] = []
        self._current = _PlannedObjects(current)
        self._execution = WriteExecution(log, self._current, appending)
        self._appending = appending

    def manifests(self, kind: str) -> list[tuple[Target, bytes]]:
        """Return the objects of a kind that the changes so far create or replace, as JSON."""
        return self._current.manifests(kind)

    def definitions(self) -> list[bytes]:
        """Return the CustomResourceDefinitions that the changes so far create or replace, as JSON."""
        return [manifest for _, manifest in self.manifests("CustomResourceDefinition")]

    async def check(self, mutation: Mutation) -> Problem | None:
        """Return the problem that prevents a mutation, None if there is none; raises StatusError if it is refused."""
        return await self._execution.check(mutation)

    async def change(
        self, mutation: Mutation, *, source: str, dry_run: bool = False, body_bytes: int = 0
    ) -> Written | Problem:
        """Compute one mutation and collect its records; ignore ``dry_run``. Raises StatusError if it is refused."""
        del dry_run
        answer = await self._execution.computed(mutation, source, body_bytes)
        if isinstance(answer, Written):
            # The events must not expect versions of objects. The log may grow before the plan starts from it, and
            # objects that earlier changes of the plan wrote have no version yet.
            events, target = tuple(map(_for_any_version, answer.mutated.events)), mutation.target
            written = ObjectEvents(target, events, source, request_origins.CURRENT.get())
            self.records += self._appending.records_of([written])
            await self._current.take(target, answer.mutated)
        return answer


class _PlannedObjects:
    """``CurrentObjects`` that include the earlier changes of a plan."""

    def __init__(self, current: CurrentObjects) -> None:
        self._current = current
        self._planned: dict[str, StoredObject | None] = {}
        self._targets: dict[str, Target] = {}
        self._clusters: dict[str, clusters.Cluster | None] = {}

    def manifests(self, kind: str) -> list[tuple[Target, bytes]]:
        return [
            (self._targets[key], stored.manifest)
            for key, stored in self._planned.items()
            if stored is not None and stored.head.kind == kind
        ]

    async def take(self, target: Target, mutated: Mutated) -> None:
        """Store the state of the object after a change that writes or deletes it."""
        if target.route == "cluster":
            self._clusters[target.name] = _changed(await self.cluster(target.name), mutated)
            return
        for event in mutated.events:
            self._targets[target.key] = target
            if mutated.action == Action.DELETED:
                self._planned[target.key] = None
            elif isinstance(event, shapes.ObjectApplied):
                before = (await self.objects([target.key])).get(target.key)
                self._planned[target.key] = _stored(target, bytes(event.manifest), before)

    async def settle(self, number: int) -> None:
        await self._current.settle(number)

    async def objects(self, object_keys: Sequence[str]) -> dict[str, StoredObject]:
        stored = await self._current.objects([key for key in object_keys if key not in self._planned])
        planned = {key: self._planned.get(key) for key in object_keys}
        return stored | {key: value for key, value in planned.items() if value is not None}

    async def cluster(self, name: str) -> clusters.Cluster | None:
        return self._clusters[name] if name in self._clusters else await self._current.cluster(name)


def _changed(cluster: clusters.Cluster | None, mutated: Mutated) -> clusters.Cluster | None:
    """Return a cluster after a planned change, None if it has left; its version, uid and times are not known yet."""
    for event in mutated.events:
        match event:
            case ClusterLeft():
                return None
            case ClusterJoined() if cluster is None:
                head = Head(0, 1, "", 0, "", CLUSTER_GROUP, "Cluster", event.name)
                cluster = clusters.Cluster(name=event.name, head=head, spec=joined(event, 0))
            case _ if cluster is not None:
                cluster = with_event(cluster, event, 0)
            case _:
                pass
    return cluster


def _stored(target: Target, manifest: bytes, before: StoredObject | None) -> StoredObject:
    """Return an object as it would be stored after a planned change; its version and uid are not known yet."""
    digest = kube_objects.spec_digest(msgspec.Raw(manifest))
    head = Head(
        version=0,
        generation=before.head.generation + (digest != before.head.digest) if before else 1,
        uid=before.head.uid if before else "",
        created_ms=before.head.created_ms if before else 0,
        digest=digest,
        api_version=target.api_version,
        kind=target.kind,
        name=target.name,
    )
    if before is None:
        return StoredObject(number=0, head=head, manifest=manifest)
    return structs.replace(before, head=head, manifest=manifest)


def _for_any_version(event: shapes.Event) -> shapes.Event:
    return structs.replace(event, expects=None) if hasattr(event, "expects") else event
