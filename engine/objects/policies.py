"""Propagation policies: which templates a rule means, and what it says of them (policy.karmada.io/v1alpha1).

Field names on the wire are Karmada's; unknown fields are ignored and ``null`` means absent. The placement is
kept as it was written, for whoever compiles it. Which policy wins is not decided here.
"""

from typing import Final, cast

import msgspec
from msgspec import Struct, field

from engine.objects import selectors

PROPAGATION_POLICY: Final = "PropagationPolicy"
CLUSTER_PROPAGATION_POLICY: Final = "ClusterPropagationPolicy"

_ALWAYS: Final = "Always"
_LAZY: Final = "Lazy"
_GRACEFULLY: Final = "Gracefully"
_MODES: Final = {"": _GRACEFULLY, "Graciously": _GRACEFULLY, "Immediately": "Directly"}
_TOLERATION_SECONDS: Final = 300


class Annotations(Struct, frozen=True, kw_only=True):
    """The annotations that the engine acts on."""

    delete_last_copy: str = field(default="", name="reballast.io/delete-last-copy")


class Metadata(Struct, frozen=True, kw_only=True, rename="camel"):
    """Name and namespace; the namespace of a ClusterPropagationPolicy is empty."""

    name: str = ""
    namespace: str = ""
    deletion_timestamp: str | None = None
    annotations: Annotations = Annotations()


class ResourceSelector(Struct, frozen=True, kw_only=True, rename="camel"):
    """Templates of one kind: by name, or else by labels, or all; an empty namespace stands for any."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    label_selector: selectors.LabelSelector | None = None


class SuspendClusters(Struct, frozen=True, kw_only=True, rename="camel"):
    """Clusters by name."""

    cluster_names: tuple[str, ...] = ()


class Suspension(Struct, frozen=True, kw_only=True, rename="camel"):
    """Where changes are held back: everywhere, or in some clusters."""

    dispatching: bool = False
    dispatching_on_clusters: SuspendClusters = SuspendClusters()


class PreservedValue(Struct, frozen=True, kw_only=True, rename="camel"):
    """A value of the status, by its JSON path, and the label that it becomes where the workload goes."""

    alias_label_name: str = ""
    json_path: str = ""


class StatePreservation(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is kept of a workload's state when it leaves a cluster."""

    rules: tuple[PreservedValue, ...] = ()


class ClusterFailover(Struct, frozen=True, kw_only=True, rename="camel"):
    """What becomes of a workload in a cluster that fails."""

    purge_mode: str = _GRACEFULLY
    state_preservation: StatePreservation = StatePreservation()


class DecisionConditions(Struct, frozen=True, kw_only=True, rename="camel"):
    """For how long a workload may be unhealthy."""

    toleration_seconds: int = _TOLERATION_SECONDS


class ApplicationFailover(Struct, frozen=True, kw_only=True, rename="camel"):
    """What becomes of a workload that is unhealthy in a cluster."""

    decision_conditions: DecisionConditions = DecisionConditions()
    purge_mode: str = _GRACEFULLY
    grace_period_seconds: int | None = None
    state_preservation: StatePreservation = StatePreservation()

    @property
    def mode(self) -> str:
        """Gracefully, Directly or Never; older releases of the reference had other words for two of them."""
        return mode_of(self.purge_mode)


class Failover(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is to happen when a cluster, or the workload in it, fails."""

    cluster: ClusterFailover | None = None
    application: ApplicationFailover | None = None


def mode_of(purge_mode: str) -> str:
    """A purge mode by its present name; none stands for Gracefully."""
    return _MODES.get(purge_mode, purge_mode)


class SchedulePriority(Struct, frozen=True, kw_only=True, rename="camel"):
    """Where the priority of what is placed comes from: which PriorityClass, by the source that names it."""

    priority_class_source: str = ""
    priority_class_name: str = ""


class PolicySpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the policy says; ``priority`` may be negative, higher ones win."""

    resource_selectors: tuple[ResourceSelector, ...] = ()
    priority: int = 0
    preemption: str = "Never"
    placement: msgspec.Raw = msgspec.Raw(b"{}")
    conflict_resolution: str = "Abort"
    preserve_resources_on_deletion: bool = False
    suspension: Suspension | None = None
    failover: Failover | None = None
    activation_preference: str = ""
    propagate_deps: bool = False
    schedule_priority: SchedulePriority | None = None

    @property
    def purge_mode(self) -> str:
        """How a failed cluster is cleared; empty where the engine's own option decides."""
        cluster = self.failover.cluster if self.failover else None
        return mode_of(cluster.purge_mode) if cluster else ""

    @property
    def is_lazy(self) -> bool:
        """Whether a change of the policy waits, for each template, until that template changes."""
        return self.activation_preference == _LAZY

    @property
    def may_preempt(self) -> bool:
        """Whether the policy asks to take templates from others."""
        return self.preemption == _ALWAYS


class Policy(Struct, frozen=True, kw_only=True, rename="camel"):
    """A PropagationPolicy or a ClusterPropagationPolicy, told apart by ``kind``."""

    kind: str
    metadata: Metadata = Metadata()
    spec: PolicySpec = PolicySpec()

    @property
    def is_deleting(self) -> bool:
        """Whether the policy is on its way out and claims nothing more."""
        return self.metadata.deletion_timestamp is not None

    @property
    def deletes_last_copy(self) -> bool:
        """Whether graceful evictions end with their grace period in any case, as in the reference."""
        return self.metadata.annotations.delete_last_copy == "true"

    @property
    def selectors(self) -> tuple[ResourceSelector, ...]:
        """The selectors with their namespaces filled in.

        Those of a PropagationPolicy mean its own namespace; one that names another namespace means nothing
        and is left out. Those of a ClusterPropagationPolicy stay as they are.
        """
        if self.kind == CLUSTER_PROPAGATION_POLICY:
            return self.spec.resource_selectors
        own = self.metadata.namespace
        return tuple(
            msgspec.structs.replace(selector, namespace=own)
            for selector in self.spec.resource_selectors
            if selector.namespace in {"", own}
        )


_DECODER: Final = msgspec.json.Decoder(Policy)


def decode(manifest: msgspec.Raw | bytes) -> Policy:
    """The policy in a manifest; raises msgspec.ValidationError or msgspec.DecodeError for another shape."""
    return _DECODER.decode(without_nulls(manifest))


def without_nulls(manifest: msgspec.Raw | bytes) -> bytes:
    """A manifest without fields that are null, which means absent; raises msgspec.DecodeError for what is no JSON."""
    raw = bytes(manifest)
    return msgspec.json.encode(_without_nulls(msgspec.json.decode(raw))) if b"null" in raw else raw


def _without_nulls(value: object) -> object:
    match value:
        case dict():
            fields = cast("dict[str, object]", value)
            return {name: _without_nulls(field) for name, field in fields.items() if field is not None}
        case list():
            return [_without_nulls(item) for item in cast("list[object]", value)]
        case _:
            return value
