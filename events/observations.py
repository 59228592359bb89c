"""Topic ``observations``: objects and decisions of another control plane, and Events that clients write."""

from typing import Final

import msgspec

from events import keys, shapes, topics, vocabulary


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
        """The timeline key of the local object with this kind and name; for a template, its binding's key."""
        return timeline_key(self.kind, self.namespace, self.name)


CLUSTER: Final = "Cluster"
_EVENT_KIND: Final = "Event"
_NO_TEMPLATES: Final = frozenset(
    {
        "PropagationPolicy",
        "ClusterPropagationPolicy",
        "OverridePolicy",
        "ClusterOverridePolicy",
        "ClusterTaintPolicy",
        "WorkloadRebalancer",
        "Namespace",
        "Event",
    }
)


def timeline_key(kind: str, namespace: str, name: str) -> str:
    """Return the key of the timeline that shows an object; for a template and its binding, the binding's key."""
    if kind in vocabulary.BINDING_KINDS:
        return keys.full_name(namespace, name)
    if kind == CLUSTER:
        return keys.cluster_key(name)
    if kind in _NO_TEMPLATES:
        return keys.object_key(kind, namespace, name)
    return keys.binding_key(kind, namespace, name)


class ObjectChange(Observation, frozen=True, kw_only=True):
    """Base of the events about a change of an object.

    ``group`` is the API group; empty if it is the group in which Kubernetes or Karmada defines a kind of that name.
    """

    group: str = ""

    @property
    def full_kind(self) -> str:
        """The kind, with the group if that is recorded: ``Service``, ``Service.serving.knative.dev``."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def is_binding(self) -> bool:
        """Whether the object is a binding of Karmada's."""
        return self.kind in vocabulary.BINDING_KINDS and not self.group

    @property
    def record_key(self) -> str:
        return keys.object_key(self.full_kind, self.namespace, self.name)

    @property
    def timeline_key(self) -> str:
        if self.group:
            return keys.binding_key(self.kind, self.namespace, self.name)
        return timeline_key(self.kind, self.namespace, self.name)


@shapes.recorded("object-observed", topics.OBSERVATIONS)
class ObjectObserved(ObjectChange, frozen=True, kw_only=True):
    """An object of another control plane was created or changed: the whole object.

    The values of a Secret are replaced by digests. ``version`` is the object's resourceVersion, which orders the
    changes of all kinds. ``skipping``: the change comes from a list after a watch had ended, so earlier versions of
    the object may not have been observed.
    """

    manifest: msgspec.Raw
    version: shapes.Count
    skipping: bool = False


@shapes.recorded("object-vanished", topics.OBSERVATIONS)
class ObjectVanished(ObjectChange, frozen=True, kw_only=True):
    """An object of another control plane was deleted; ``version`` is 0 if only a later list showed the deletion."""

    version: shapes.Count = 0


@shapes.recorded("control-plane-restored", topics.OBSERVATIONS)
class ControlPlaneRestored(shapes.Event, frozen=True, kw_only=True):
    """Another control plane was restored from a backup: its newest resourceVersion is lower than the one seen before.

    ``seen`` is the newest version before the restore, ``version`` the newest after it. All objects are listed again;
    the changes that follow may have versions that were recorded before.
    """

    seen: shapes.Count
    version: shapes.Count

    @property
    def record_key(self) -> str:
        return "control-plane"


class _Subject(shapes.Shape, frozen=True, rename="camel"):
    """The object that an Event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""


class _Event(shapes.Shape, frozen=True, rename="camel"):
    involved_object: _Subject = _Subject()


_EVENT: Final = msgspec.json.Decoder(_Event)


def subject_key(data: Observation) -> str:
    """Return the timeline key of the object that an Event is about; empty if ``data`` is not a readable Event."""
    if not isinstance(data, ObjectObserved) or data.kind != _EVENT_KIND or data.group:
        return ""
    try:
        subject = _EVENT.decode(data.manifest).involved_object
    except (msgspec.MsgspecError, ValueError):
        return ""
    return timeline_key(subject.kind, subject.namespace, subject.name) if subject.name else ""


class ShadowCondition(shapes.Shape, frozen=True, kw_only=True):
    """A result of scheduling: replicas by cluster, and the Scheduled condition."""

    clusters: dict[str, int]
    reason: str
    message: str


class ShadowReason(shapes.Shape, frozen=True, kw_only=True):
    """Our reasons for one cluster: the filters that exclude it, or its capacity, weight and kept replicas."""

    cluster: str
    failed: tuple[str, ...] = ()
    allocatable: shapes.Count | None = None
    weight: shapes.Count | None = None
    kept: shapes.Count | None = None


@shapes.recorded("decision-compared", topics.OBSERVATIONS)
class DecisionCompared(Observation, frozen=True, kw_only=True):
    """A decision of another control plane's scheduler, and Reballast's from the state observed before that decision.

    ``version`` is the resourceVersion of the write that completed the decision, ``basis`` that of the binding from
    which it was made. ``verdict`` is ``same``, ``race`` (equal to Reballast's from another state that the scheduler may
    have seen), ``known`` (a documented difference) or ``unexplained``. Unless it is ``same``, ``reasons`` are
    Reballast's for the clusters of both results; the other scheduler's reasons are in the message of its condition.
    """

    version: shapes.Count
    basis: shapes.Count
    verdict: str
    why: str = ""
    observed: ShadowCondition
    computed: ShadowCondition
    reasons: tuple[ShadowReason, ...] = ()


@shapes.recorded("decision-made", topics.OBSERVATIONS)
class DecisionMade(Observation, frozen=True, kw_only=True):
    """Our decision on a binding of another control plane, recorded before it is written there.

    It was made from the binding with this ``uid`` and ``generation`` at resourceVersion ``version``. ``clusters`` is
    the new assignment; ``places`` is True if it differs from the previous one. ``applied`` is the placement (JSON) to
    write into the binding's annotation, empty if the annotation has it already. ``status``, ``reason`` and ``message``
    are those of the condition Scheduled, ``time`` (RFC 3339, whole seconds) is its time.
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

    No decision depends on these events. A Kubernetes Event is listed only while it is recent.
    """

    name: str
    namespace: str
    manifest: msgspec.Raw

    @property
    def record_key(self) -> str:
        return keys.object_key("Event", self.namespace, self.name)


@shapes.recorded("kubernetes-event-written", topics.OBSERVATIONS)
class KubernetesEventWritten(_KubernetesEvent, frozen=True, kw_only=True):
    """A client created or changed a Kubernetes Event."""


@shapes.recorded("kubernetes-event-deleted", topics.OBSERVATIONS)
class KubernetesEventDeleted(_KubernetesEvent, frozen=True, kw_only=True):
    """A client deleted a Kubernetes Event that a client wrote; ``manifest`` is its last state."""
