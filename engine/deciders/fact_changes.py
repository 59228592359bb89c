"""Changes of the facts by one folded record, with the old and the new value where deciders compare them."""

from msgspec import Struct

from engine.domain.clusters import Health
from engine.objects import clusters as manifests
from engine.objects import selector_index
from events import tracing
from events.shapes import PolicyRef
from events.validation import verdicts


class ClusterChanged(Struct, frozen=True, gc=False):
    """A cluster joined, left or changed in anything but its capacity."""

    name: str
    old: manifests.ClusterManifest | None
    new: manifests.ClusterManifest | None


class CapacityGrew(Struct, frozen=True, gc=False):
    """A cluster reported its capacity, which may have grown."""

    name: str


class PolicyChanged(Struct, frozen=True, gc=False):
    """A policy was applied, changed or deleted."""

    policy: PolicyRef
    selections: tuple[selector_index.Selection, ...]
    """Its selection before and after the change."""


class InterpreterChanged(Struct, frozen=True, gc=False):
    """The interpreter of a custom kind was applied, changed or deleted."""

    api_version: str
    kind: str


class HealthReported(Struct, frozen=True, gc=False):
    """A health report of a cluster; ``is_change``: its status differs from the previous one."""

    name: str
    health: Health
    is_change: bool


class ConditionsChanged(Struct, frozen=True, gc=False):
    """The status of a condition that clients report of a cluster changed."""

    name: str


class TaintPolicyChanged(Struct, frozen=True, gc=False):
    """A ClusterTaintPolicy was applied, changed or deleted."""


class OverrideChanged(Struct, frozen=True, gc=False):
    """An override policy was applied, changed or deleted."""

    selections: tuple[selector_index.Selection, ...]
    """Its selection before and after the change."""


class QuotaChanged(Struct, frozen=True, gc=False):
    """The ResourceQuotas with this binding key that are assigned to clusters changed."""

    key: str


class OverallChanged(Struct, frozen=True, gc=False):
    """The overall limits of a namespace changed; ``is_switch``: it had none before, or has none any longer."""

    namespace: str
    is_switch: bool


class PriorityClassChanged(Struct, frozen=True, gc=False):
    """A PriorityClass was applied, changed or deleted."""

    name: str


class FactRefused(Struct, frozen=True, gc=False):
    """An input was refused; the owner shard of its key writes the rejection."""

    refused: verdicts.Refused


Change = (
    ClusterChanged
    | CapacityGrew
    | PolicyChanged
    | InterpreterChanged
    | HealthReported
    | ConditionsChanged
    | TaintPolicyChanged
    | OverrideChanged
    | QuotaChanged
    | OverallChanged
    | PriorityClassChanged
    | FactRefused
)


class Changed(Struct, frozen=True, gc=False):
    """A change with the position, correlation id (``story``), trace and time of its input."""

    change: Change
    topic: str
    offset: int
    story: str
    trace: tracing.Trace = tracing.NO_TRACE
    at_ms: int = 0
