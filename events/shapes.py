"""Value shapes that the events of several topics share."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from events import limits, times

Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number that any reader, in any language, has room for."""

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""How many, or the how manieth."""

Seconds = Annotated[int, Meta(ge=0, le=limits.SECONDS_MAX)]
"""A span of time."""

Replicas = Annotated[int, Meta(ge=0, le=limits.REPLICAS_MAX)]
"""Replicas in one cluster, or of one workload."""

Instant = Annotated[int, Meta(ge=times.FIRST_MS, le=times.LAST_MS)]
"""Milliseconds since 1970 (UTC), within the years that RFC 3339 can write."""


Object = dict[str, msgspec.Raw]
"""An object of JSON, its fields as they were written."""


class Event(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all event data: immutable, camelCase on the wire, absent fields left out.

    New fields get defaults and meanings never change; a new meaning is a new type.
    """


class Shape(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Base of the values inside events."""


class WorkloadRef(Shape, frozen=True, kw_only=True):
    """Names one object of any kind; ``namespace`` is empty for cluster-scoped ones."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""


class PolicyRef(Shape, frozen=True, kw_only=True):
    """Names a PropagationPolicy or ClusterPropagationPolicy."""

    kind: str
    name: str
    namespace: str = ""


class OverrideRef(Shape, frozen=True, kw_only=True):
    """What of an override policy holds in one cluster.

    ``offset`` is where in its topic the policy stands, ``rules`` the places of the rules that hold, in their order;
    the rule of a policy without a list of them (``targetCluster`` and ``overriders``) has place 0. ``digest`` is that
    of what these rules say.
    """

    kind: str
    name: str
    offset: Count
    digest: str
    rules: tuple[Count, ...]
    namespace: str = ""


class StateRule(Shape, frozen=True, kw_only=True):
    """A value of a workload's status that is kept when it is evicted: where it stands, and the label it becomes."""

    alias: str
    path: str


class HealthRule(Shape, frozen=True, kw_only=True):
    """When an object is well: what stands at ``path`` of its status, as text, is one of ``values``."""

    path: str
    values: tuple[str, ...]


class Reading(Shape, frozen=True, kw_only=True):
    """How members read what a work makes, beyond what they know of its kind; paths are JSON paths.

    ``values`` are places in the status whose texts go with reports; ``health``, where it is there, counts in place of
    what is known of the kind; ``retained`` are fields of the object that are the member's, once it is there.
    ``replicas`` is the dotted path, from the object's root, at which its replicas are set, where that is not the
    kind's usual one.
    """

    values: tuple[str, ...] = ()
    health: HealthRule | None = None
    retained: tuple[str, ...] = ()
    replicas: str = ""


Values = Annotated[
    dict[str, Annotated[str, Meta(max_length=limits.STATUS_VALUE_CHARS_MAX)]],
    Meta(max_length=limits.STATUS_VALUES_MAX),
]
"""Texts by the path at which they stand in a status."""


class TargetCluster(Shape, frozen=True, kw_only=True):
    """A cluster and the replicas placed on it; 0 for workloads without replicas."""

    name: str
    replicas: Count = 0


class Occupant(Shape, frozen=True, kw_only=True):
    """A binding with replicas in a cluster, whose room others of higher priority may take: what each replica needs."""

    key: str
    cluster: str
    priority: Whole
    replicas: Replicas
    requests: dict[str, str] = {}


class FieldsOwner(Shape, frozen=True, kw_only=True):
    """Which fields of an object somebody wrote last: one entry of ``managedFields``, as Kubernetes has it."""

    manager: str
    operation: str
    api_version: str
    fields_v1: msgspec.Raw
    time: str = ""
    subresource: str = ""
