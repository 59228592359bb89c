"""Mutations of one object: each is a value with a pure function from the stored object to the events to append.

A mutation is applied again, to a newer object, if another client wrote in between.
"""

import enum
from typing import Protocol

from msgspec import Struct, structs

from events import catalogue, keys, shapes, specs, topics
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds
from projections.clusters import Cluster
from projections.objects import StoredObject


class Target(Struct, frozen=True, kw_only=True):
    """API version, kind, namespace and name of one object; the namespace is empty for cluster-scoped kinds.

    The other fields are computed from these. ``route`` is how the engine treats the kind, for example as a template, a
    policy or a cluster. ``key`` is the record key in the object's topic, which decides the partition.
    ``namespace_key`` is the key of the namespace that the object is in.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    route: shapes.Route = "template"
    key: str = ""
    namespace_key: str = ""

    def __post_init__(self) -> None:
        route = kinds.route_of(self.api_version, self.kind)
        key = kinds.record_key(route, self.kind, self.namespace, self.name)
        structs.force_setattr(self, "route", route)
        structs.force_setattr(self, "key", key)
        structs.force_setattr(self, "namespace_key", keys.object_key("Namespace", "", self.namespace))

    @property
    def slot(self) -> tuple[str, int]:
        """The topic and the partition of the object's records."""
        is_cluster = self.route == "cluster"
        topic = topics.CLUSTERS if is_cluster else catalogue.BY_ROUTE[self.route].event_type.topic
        return topic, keys.partition_of(self.key, topics.TOPICS[topic].partitions)

    @property
    def reference(self) -> shapes.WorkloadRef:
        return shapes.WorkloadRef(
            api_version=self.api_version, kind=self.kind, name=self.name, namespace=self.namespace
        )

    @property
    def resource(self) -> str:
        """The kind as kubectl prints it: ``deployment.apps``."""
        return keys.resource_name(self.api_version, self.kind)


StoredState = StoredObject | Cluster | None


class Action(enum.StrEnum):
    """Effect of a mutation on its object. A marked object is terminating: it waits for its finalizers."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    MARKED = "marked"
    DELETED = "deleted"


class Mutated(Struct, frozen=True, kw_only=True):
    """An object after a mutation: ``value`` as rendered, and the events to append (none if nothing changes).

    ``is_report``: the events do not write the object itself, so its version stays the same, and they take effect if
    the object exists. Examples are a cluster's capacity, or permission to delete a template's workload.
    """

    action: Action
    value: KubeObject = KubeObject({})
    events: tuple[shapes.Event, ...] = ()
    warnings: tuple[str, ...] = ()
    is_report: bool = False


class Verdict(enum.Enum):
    """Why a mutation was not made.

    *Late*: another client changed the object during each attempt. *Not found*: there is no such object. *Unknown*:
    the append failed in a way that leaves open whether the events were stored, or the views failed after it.
    """

    LATE = enum.auto()
    NOT_FOUND = enum.auto()
    UNKNOWN = enum.auto()


class Problem(Struct, frozen=True):
    """A mutation that was not made, and the reason as a sentence."""

    verdict: Verdict
    reason: str


class Written(Struct, frozen=True, kw_only=True):
    """A mutation that was made, or that had nothing to change.

    ``resource_version`` is the sequence number of the write, 0 if nothing was written. ``stored`` is the object after
    the write, None if another client wrote it since.
    """

    mutated: Mutated
    resource_version: int = 0
    stored: StoredObject | None = None


class Mutation(Protocol):
    """A change of one object."""

    @property
    def target(self) -> Target: ...

    def apply(self, stored: StoredState) -> Mutated | Problem:
        """Return the object after the mutation and the events to append; a Problem if a required object is missing.

        Pure. Raises StatusError if the request is refused, for example because it is invalid or in conflict.
        """
        ...


class Edited(Struct, frozen=True):
    """An object after an edit, and warnings for the client."""

    value: KubeObject
    warnings: tuple[str, ...] = ()


class Edit(Protocol):
    """A change of an object in its rendered form, which clients see."""

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the new object; ``live`` is the current one, if it exists. Pure; raises StatusError."""
        ...


class BindingChange(Struct, frozen=True, kw_only=True):
    """Change the parts of a binding that clients may write.

    ``clusters`` are those in which a graceful eviction has kept the workload, but in which it may now be deleted.
    ``scheduling`` and ``dispatching``: True suspends, False resumes, None changes nothing.
    """

    target: Target
    clusters: tuple[str, ...] = ()
    scheduling: bool | None = None
    dispatching: bool | None = None

    @property
    def is_empty(self) -> bool:
        return not self.clusters and not self._suspends

    @property
    def _suspends(self) -> bool:
        return self.scheduling is not None or self.dispatching is not None

    def apply(self, stored: StoredState) -> Mutated | Problem:
        """Return ``DeletionAllowed`` per cluster, and ``SuspensionWritten`` if this change suspends or resumes."""
        if stored is None:
            return not_found(self.target)
        template = self.target.reference
        events: tuple[shapes.Event, ...] = tuple(
            specs.DeletionAllowed(template=template, cluster=name) for name in self.clusters
        )
        if self._suspends:
            written = specs.SuspensionWritten(
                template=template, scheduling=self.scheduling, dispatching=self.dispatching
            )
            events += (written,)
        return Mutated(action=Action.CONFIGURED, events=events, is_report=True)


def not_found(target: Target) -> Problem:
    """The problem of a mutation whose object does not exist."""
    where = f" in namespace {target.namespace}" if target.namespace else ""
    return Problem(Verdict.NOT_FOUND, f'{target.resource} "{target.name}" not found{where}')
