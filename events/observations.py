"""Topic ``observations``: objects of another control plane, its decisions compared with ours, and clients' Events."""

from typing import Final

import msgspec

from events import keys, shapes


class Observation(shapes.Event, frozen=True, kw_only=True):
    """Base of the events about an object of another control plane."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def record_key(self) -> str:
        return keys.object_key(self.kind, self.namespace, self.name)

    @property
    def timeline_key(self) -> str:
        """The key under which our own binding or cluster of that name has its timeline; else the record's key."""
        if self.kind in _BINDINGS:
            return f"{self.namespace}/{self.name}" if self.namespace else self.name
        return keys.cluster_key(self.name) if self.kind == _CLUSTER else self.record_key


_BINDINGS: Final = frozenset({"ResourceBinding", "ClusterResourceBinding"})
_CLUSTER: Final = "Cluster"


class ObjectObserved(Observation, frozen=True, kw_only=True):
    """An object of another control plane was created or changed: the whole object.

    Instead of the values of a Secret there are digests. ``version`` is its resourceVersion, one order over all kinds.
    ``skipping``: a list showed the change after a watch had to end, so versions between may not have been observed.
    """

    manifest: msgspec.Raw
    version: shapes.Count
    skipping: bool = False


class ObjectVanished(Observation, frozen=True, kw_only=True):
    """An object of another control plane was deleted; 0 as ``version`` if only a later list showed that."""

    version: shapes.Count = 0


class ShadowCondition(shapes.Shape, frozen=True, kw_only=True):
    """A result of scheduling: replicas by cluster, and the Scheduled condition."""

    clusters: dict[str, int]
    reason: str
    message: str


class ShadowReason(shapes.Shape, frozen=True, kw_only=True):
    """Our reasons about one cluster: the filters that exclude it, or how many replicas it can take and keeps."""

    cluster: str
    failed: tuple[str, ...] = ()
    allocatable: shapes.Count | None = None
    weight: shapes.Count | None = None
    kept: shapes.Count | None = None


class DecisionCompared(Observation, frozen=True, kw_only=True):
    """A decision of another control plane's scheduler, compared with the one made from the state observed before it.

    ``version`` is the resourceVersion of the write that ended the decision, ``basis`` that of the binding that it was
    made from. ``verdict`` is ``same``; ``race``: another state within the window gives the same; ``known``: a
    documented difference; or ``unexplained``. If it is not ``same``, ``reasons`` are ours about the clusters of both
    results; the other scheduler's are the message of its condition.
    """

    version: shapes.Count
    basis: shapes.Count
    verdict: str
    why: str = ""
    observed: ShadowCondition
    computed: ShadowCondition
    reasons: tuple[ShadowReason, ...] = ()


class DecisionMade(Observation, frozen=True, kw_only=True):
    """Our decision on a binding of another control plane, to be written to it.

    It was made from the binding's resourceVersion ``version``, which has this ``uid`` and ``generation``. ``clusters``
    is the assignment after it; ``places`` if that differs from the one before. ``applied`` is the placement to record
    as JSON, empty if it is recorded already. ``status``, ``reason`` and ``message`` are those of the Scheduled
    condition, ``time`` (RFC 3339, whole seconds) is its time.
    """

    uid: str
    generation: shapes.Count
    version: shapes.Count
    trigger: str
    fresh: bool = False
    clusters: dict[str, int]
    places: bool = False
    applied: str = ""
    affinity: str = ""
    status: str
    reason: str
    message: str
    time: str


class _KubernetesEvent(shapes.Event, frozen=True, kw_only=True):
    """Base of the events about a Kubernetes Event of a client: the whole object, in the form of ``v1``.

    They decide nothing, and are shown for some time.
    """

    name: str
    namespace: str
    manifest: msgspec.Raw

    @property
    def record_key(self) -> str:
        return keys.object_key("Event", self.namespace, self.name)


class KubernetesEventWritten(_KubernetesEvent, frozen=True, kw_only=True):
    """A client created or changed a Kubernetes Event."""


class KubernetesEventDeleted(_KubernetesEvent, frozen=True, kw_only=True):
    """A client deleted a Kubernetes Event that a client wrote; ``manifest`` is its last state."""
