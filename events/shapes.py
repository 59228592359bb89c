"""Value types that events of several topics share."""

from collections.abc import Callable
from typing import Annotated, ClassVar, Final, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from events import enums, keys, limits, times

Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""An integer of 64 bits, so that readers in any language can hold it."""

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A non-negative count or sequence number."""

Seconds = Annotated[int, Meta(ge=0, le=limits.SECONDS_MAX)]
"""A duration in seconds."""

Replicas = Annotated[int, Meta(ge=0, le=limits.REPLICAS_MAX)]

Instant = Annotated[int, Meta(ge=times.FIRST_MS, le=times.LAST_MS)]
"""Milliseconds since 1970 (UTC), within the years that RFC 3339 can write."""


Object = dict[str, msgspec.Raw]
"""A JSON object whose field values keep their bytes as written."""


Route = Literal["template", "policy", "namespace", "interpreter", "configuration", "rebalancer", "cluster"]
"""How objects of a kind are recorded: by which events, under which key."""

_NAMESPACE: Final = "io.reballast"


class EventType(Struct, frozen=True, kw_only=True):
    """One event type.

    ``type`` is the CloudEvents type, such as ``io.reballast.template-applied.v1``; ``name`` is the part before the
    version.
    """

    name: str
    struct: "type[Event]"
    topic: str
    type: str


class Event(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all event data: immutable, camelCase on the wire, without fields that have their default value.

    A new field must have a default. A field never changes its meaning: a new meaning needs a new event type.
    """

    event_type: ClassVar[EventType]
    """Set by ``recorded``; bases of several events have none."""

    @property
    def record_key(self) -> str:
        """Key of the event's record, which determines its partition.

        Raises TypeError for events whose fields do not determine it: an object's key is in its manifest, and a
        decision's key names its shard.
        """
        message = f"{type(self).__name__} is not an input with a key of its own"
        raise TypeError(message)

    @property
    def subject(self) -> str:
        """Key of the binding, rebalancer, cluster or object that the event is about: its CloudEvents subject."""
        return self.record_key

    @property
    def related(self) -> tuple[str, ...]:
        """Keys of the other objects on whose timelines the event appears."""
        return ()


_EventT = TypeVar("_EventT", bound=Event)


def recorded(name: str, topic: str) -> Callable[[type[_EventT]], type[_EventT]]:
    """Return a class decorator: events of the class are recorded in a topic under a name.

    The name is a literal, so that a renamed class does not change the log.
    """
    full_name = f"{_NAMESPACE}.{name}"

    def decorate(struct: type[_EventT]) -> type[_EventT]:
        struct.event_type = EventType(name=full_name, struct=struct, topic=topic, type=f"{full_name}.v1")
        return struct

    return decorate


class ObjectApplied(Event, frozen=True, kw_only=True):
    """Base of the events that contain a whole object of one ``route``; ``expects`` is as in ``TemplateApplied``."""

    route: ClassVar[Route]

    manifest: msgspec.Raw
    expects: Count | None = None


class ObjectDeleted(Event, frozen=True, kw_only=True):
    """Base of the events that delete an object; each has the field ``expects``."""


class Shape(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of the structs nested in events."""


class WorkloadRef(Shape, frozen=True, kw_only=True):
    """Identifies an object of any kind; ``namespace`` is empty for cluster-scoped objects."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    @property
    def binding_key(self) -> str:
        """Key of the object's binding."""
        return keys.binding_key(self.kind, self.namespace, self.name)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """API group, kind, namespace and name: they are the same in any version of the group."""
        return keys.group_of(self.api_version), self.kind, self.namespace, self.name

    @property
    def object_key(self) -> str:
        """Key of the object's records, for kinds that every shard reads."""
        return keys.object_key(self.kind, self.namespace, self.name)

    @property
    def sort_key(self) -> str:
        """Sort key for ``observedWorkloads``: the fields joined by spaces, also if the namespace is empty."""
        return f"{self.api_version} {self.kind} {self.namespace} {self.name}"


class PolicyRef(Shape, frozen=True, kw_only=True):
    """Identifies a PropagationPolicy or ClusterPropagationPolicy."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def object_key(self) -> str:
        """Key of the policy's records."""
        return keys.object_key(self.kind, self.namespace, self.name)


class OverrideRef(Shape, frozen=True, kw_only=True):
    """The rules of an override policy that apply to a work in one cluster.

    ``offset`` is the offset of the policy in the topic ``policies``. ``rules`` are the indexes of the applicable
    rules, in order; a policy without ``overrideRules`` (top-level ``targetCluster`` and ``overriders``) counts as one
    rule with index 0. ``digest`` is the digest of these rules' content.
    """

    kind: str
    name: str
    offset: Count
    digest: str
    rules: tuple[Count, ...]
    namespace: str = ""

    @property
    def policy(self) -> PolicyRef:
        return PolicyRef(kind=self.kind, name=self.name, namespace=self.namespace)


class StateRule(Shape, frozen=True, kw_only=True):
    """A status value kept at an eviction: its JSON path, and the name of the label that carries it."""

    alias: str
    path: str


class HealthRule(Shape, frozen=True, kw_only=True):
    """When an object is healthy: the status value at ``path``, as text, is one of ``values``.

    ``operator`` may name another comparison. If ``at_least`` is set, it is a path from the object's root: the count
    in the status at ``path`` must not be smaller than the count at that path. Absent counts are 0.
    """

    path: str
    values: tuple[str, ...]
    operator: enums.HealthOperator = enums.HealthOperator.IN
    at_least: str = ""


class Reading(Shape, frozen=True, kw_only=True):
    """How members read the object of a work, in addition to the built-in rules for its kind; paths are JSON paths.

    ``values`` are paths in the status whose values are added to reports; with ``whole`` the whole status is reported as
    well. ``health``, if set, replaces the kind's built-in health rule. ``alternatives``, if set, replace it too: an
    object that has a status is healthy if it meets all rules of one alternative. ``retained`` are fields of the object
    that keep the member's value once the object exists. ``replicas`` is the dotted path, from the object's root, of the
    replica count if it is not the usual one of the kind.
    """

    values: tuple[str, ...] = ()
    health: HealthRule | None = None
    retained: tuple[str, ...] = ()
    replicas: str = ""
    alternatives: tuple[tuple[HealthRule, ...], ...] = ()
    whole: bool = False


Values = Annotated[
    dict[str, Annotated[str, Meta(max_length=limits.STATUS_VALUE_CHARS_MAX)]],
    Meta(max_length=limits.STATUS_VALUES_MAX),
]
"""Status values as text, by JSON path."""


Status = Annotated[str, Meta(max_length=limits.STATUS_CHARS_MAX)]
"""The whole status of an object, as JSON; empty if only single values of it are reported, or if it is too long."""


class TargetCluster(Shape, frozen=True, kw_only=True):
    """A cluster and the replicas assigned to it; 0 for workloads without replicas."""

    name: str
    replicas: Count = 0


class Occupant(Shape, frozen=True, kw_only=True):
    """A candidate for preemption: a binding with replicas in a cluster, and the resource requests of each replica."""

    key: str
    cluster: str
    priority: Whole
    replicas: Replicas
    requests: dict[str, str] = {}


class FieldsOwner(Shape, frozen=True, kw_only=True):
    """One entry of ``managedFields``, as in Kubernetes: the fields that a manager owns."""

    manager: str
    operation: str
    api_version: str
    fields_v1: msgspec.Raw
    time: str = ""
    subresource: str = ""
