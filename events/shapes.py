"""Value shapes that the events of several topics share."""

from msgspec import Struct


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


class TargetCluster(Shape, frozen=True, kw_only=True):
    """A cluster and the replicas placed on it; 0 for workloads without replicas."""

    name: str
    replicas: int = 0
