"""Propagation policies: the templates that they select, and their settings (policy.karmada.io/v1alpha1).

Field names on the wire are Karmada's; unknown fields are ignored, and ``null`` means absent. The placement
stays raw JSON. Which policy claims a template is decided elsewhere.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct, field

from engine.kubeapi.values import selectors
from engine.objects import placements
from events import json_values, kube_objects, shapes, vocabulary

PROPAGATION_POLICY: Final = "PropagationPolicy"
CLUSTER_PROPAGATION_POLICY: Final = "ClusterPropagationPolicy"
KINDS: Final = (PROPAGATION_POLICY, CLUSTER_PROPAGATION_POLICY)
"""Kinds of the policies that choose clusters."""

_ALWAYS: Final = "Always"
LAZY: Final = "Lazy"
GRACEFUL: Final = (vocabulary.PURGE_GRACEFULLY, "Graciously")
"""Purge modes that wait for the replacement; the second one is Karmada's former name of the first."""

_MODES: Final = {
    **dict.fromkeys(("", *GRACEFUL), vocabulary.PURGE_GRACEFULLY),
    "Immediately": vocabulary.PURGE_DIRECTLY,
}
TOLERATION_SECONDS: Final = 300


class Annotations(Struct, frozen=True, kw_only=True):
    """The annotations that the engine acts on."""

    delete_last_copy: str = field(default="", name="reballast.io/delete-last-copy")


class Metadata(Struct, frozen=True, kw_only=True, rename="camel"):
    """Name and namespace; a ClusterPropagationPolicy has no namespace."""

    name: str = ""
    namespace: str = ""
    # Of any type, because the verdicts on inputs do not check it; only its presence matters.
    deletion_timestamp: object = None
    annotations: Annotations = Annotations()


class ResourceSelector(Struct, frozen=True, kw_only=True, rename="camel"):
    """Selects templates of one kind: by name, or else by labels, or all; an empty namespace matches any."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    label_selector: selectors.LabelSelector | None = None


class SuspendClusters(Struct, frozen=True, kw_only=True, rename="camel"):
    cluster_names: tuple[str, ...] = ()


class Suspension(Struct, frozen=True, kw_only=True, rename="camel"):
    """Suspends dispatching of works: to all clusters, or to some; ``dispatching`` is None if it is absent."""

    dispatching: bool | None = None
    dispatching_on_clusters: SuspendClusters = SuspendClusters()


class PreservedValue(Struct, frozen=True, kw_only=True, rename="camel"):
    """A status value to preserve, by its JSON path, and the label that carries it to the workload's next clusters."""

    alias_label_name: str = ""
    json_path: str = ""


class StatePreservation(Struct, frozen=True, kw_only=True, rename="camel"):
    """The status values that are preserved when a workload is evicted."""

    rules: tuple[PreservedValue, ...] = ()


class ClusterFailover(Struct, frozen=True, kw_only=True, rename="camel"):
    """Eviction settings for workloads in a failed cluster."""

    purge_mode: str = vocabulary.PURGE_GRACEFULLY
    state_preservation: StatePreservation = StatePreservation()


class DecisionConditions(Struct, frozen=True, kw_only=True, rename="camel"):
    """How long a workload may be unhealthy before it is evicted."""

    toleration_seconds: int = TOLERATION_SECONDS


class ApplicationFailover(Struct, frozen=True, kw_only=True, rename="camel"):
    """Eviction settings for a workload that is unhealthy in a cluster."""

    decision_conditions: DecisionConditions = DecisionConditions()
    purge_mode: str = vocabulary.PURGE_GRACEFULLY
    grace_period_seconds: int | None = None
    state_preservation: StatePreservation = StatePreservation()

    @property
    def mode(self) -> str:
        """The purge mode by its current name: Gracefully, Directly or Never."""
        return mode_of(self.purge_mode)


class Failover(Struct, frozen=True, kw_only=True, rename="camel"):
    """Eviction settings for failed clusters and unhealthy workloads."""

    cluster: ClusterFailover | None = None
    application: ApplicationFailover | None = None


def mode_of(purge_mode: str) -> str:
    """Return the current name of a purge mode; an empty one means Gracefully."""
    return _MODES.get(purge_mode, purge_mode)


class SchedulePriority(Struct, frozen=True, kw_only=True, rename="camel"):
    """The source and name of the PriorityClass for workloads of the policy."""

    priority_class_source: str = ""
    priority_class_name: str = ""


class PolicySpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """The spec of a policy; of two policies, that with the higher ``priority`` wins (it may be negative)."""

    resource_selectors: tuple[ResourceSelector, ...] = ()
    priority: int = 0
    preemption: str = "Never"
    placement: msgspec.Raw = msgspec.Raw(b"{}")
    conflict_resolution: str = "Abort"
    preserve_resources_on_deletion: bool | None = None
    suspension: Suspension | None = None
    failover: Failover | None = None
    activation_preference: str = ""
    propagate_deps: bool = False
    schedule_priority: SchedulePriority | None = None
    scheduler_name: str = "default-scheduler"
    dependent_overrides: tuple[str, ...] = ()

    @property
    def purge_mode(self) -> str:
        """Purge mode of workloads in a failed cluster; empty if the engine's default applies."""
        cluster = self.failover.cluster if self.failover else None
        return mode_of(cluster.purge_mode) if cluster else ""

    @property
    def is_lazy(self) -> bool:
        """Whether a change of the policy affects a template only when the template itself changes."""
        return self.activation_preference == LAZY

    @property
    def may_preempt(self) -> bool:
        """Whether the policy may claim templates that other policies have claimed."""
        return self.preemption == _ALWAYS


class Policy(Struct, frozen=True, kw_only=True, rename="camel"):
    """A PropagationPolicy or a ClusterPropagationPolicy, distinguished by ``kind``."""

    kind: str
    metadata: Metadata = Metadata()
    spec: PolicySpec = PolicySpec()

    @property
    def ref(self) -> shapes.PolicyRef:
        return shapes.PolicyRef(kind=self.kind, name=self.metadata.name, namespace=self.metadata.namespace)

    @property
    def is_deleting(self) -> bool:
        """Whether the policy is being deleted; it then claims no more templates."""
        return self.metadata.deletion_timestamp is not None

    @property
    def deletes_last_copy(self) -> bool:
        """Whether the grace period ends an eviction even if that deletes the last running copy, as in Karmada."""
        return self.metadata.annotations.delete_last_copy == "true"

    @property
    def selectors(self) -> tuple[ResourceSelector, ...]:
        """The selectors with their namespaces set.

        Selectors of a PropagationPolicy are restricted to its own namespace; one with another namespace
        selects nothing and is left out. Those of a ClusterPropagationPolicy are unchanged.
        """
        if self.kind == CLUSTER_PROPAGATION_POLICY:
            return self.spec.resource_selectors
        return restricted(self.spec.resource_selectors, self.metadata.namespace)


def restricted(selectors: Iterable[ResourceSelector], namespace: str) -> tuple[ResourceSelector, ...]:
    """Return the selectors with their namespace set to ``namespace``, without those that name another one."""
    return tuple(
        msgspec.structs.replace(selector, namespace=namespace)
        for selector in selectors
        if selector.namespace in {"", namespace}
    )


_DECODER: Final = msgspec.json.Decoder(Policy)
_PLACEMENT: Final = msgspec.json.Decoder(placements.Placement)


def decode(manifest: msgspec.Raw | bytes) -> Policy:
    """Decode a manifest; raises msgspec.ValidationError or msgspec.DecodeError if it is invalid."""
    policy = kube_objects.decoded(_decode, manifest)
    try:
        _PLACEMENT.decode(policy.spec.placement)
    except msgspec.ValidationError:
        # The JSON repeats a field, and an earlier value has a wrong type. Only the last value was validated: use it.
        last = msgspec.Raw(msgspec.json.encode(msgspec.json.decode(policy.spec.placement)))
        return msgspec.structs.replace(policy, spec=msgspec.structs.replace(policy.spec, placement=last))
    return policy


def _decode(manifest: msgspec.Raw | bytes) -> Policy:
    return _DECODER.decode(without_nulls(manifest))


def without_nulls(manifest: msgspec.Raw | bytes) -> bytes:
    """Return a manifest without null fields, which mean absent; raises msgspec.DecodeError for invalid JSON."""
    raw = bytes(manifest)
    return msgspec.json.encode(json_values.without_nulls(msgspec.json.decode(raw))) if b"null" in raw else raw
