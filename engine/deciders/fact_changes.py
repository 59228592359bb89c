"""Changes of the facts by one folded record, with the old and the new value where deciders compare them."""

from collections.abc import Sequence

from msgspec import Struct

from engine.deciders.state import Cause
from engine.domain.clusters import Health
from engine.objects import clusters as manifests
from engine.objects import selector_index
from events import keys
from events.records import StoredRecord
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
    """The policy's selection before and after the change."""


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
    """The conditions that clients report of a cluster changed in type or status."""

    name: str


class TaintPolicyChanged(Struct, frozen=True, gc=False):
    """A ClusterTaintPolicy was applied, changed or deleted."""


class OverrideChanged(Struct, frozen=True, gc=False):
    """An override policy was applied, changed or deleted."""

    selections: tuple[selector_index.Selection, ...]
    """The override policy's selection before and after the change."""


class QuotaChanged(Struct, frozen=True, gc=False):
    """The assignments of a ResourceQuota to clusters changed; ``key`` is the key of its binding.

    ``is_removed``: all of them were removed.
    """

    key: str
    is_removed: bool = False


class OverallChanged(Struct, frozen=True, gc=False):
    """The overall limits of a namespace changed; ``is_switch``: the namespace had none before, or has none now.

    ``removed`` is the FederatedResourceQuota whose limits were removed; empty if limits were set.
    """

    namespace: str
    is_switch: bool
    removed: str


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
    """A change of the facts, with the input that caused it and that input's offset in its topic.

    ``shard`` is the only shard that applies the change; with None all shards apply it.
    """

    change: Change
    cause: Cause
    offset: int
    shard: int | None


class FoldedFacts(Struct, frozen=True):
    """One or more records of a fact topic, in order, their changes, and their joined ``checksums``."""

    records: Sequence[StoredRecord]
    changes: Sequence[Changed]
    checksums: bytes

    def after(self, offset: int) -> "FoldedFacts":
        """Return the records from an offset on, with their changes; there may be none."""
        return folded(
            [record for record in self.records if record.offset >= offset],
            [changed for changed in self.changes if changed.offset >= offset],
        )


def folded(records: Sequence[StoredRecord], changes: Sequence[Changed]) -> FoldedFacts:
    """Return records with their changes and joined checksums."""
    return FoldedFacts(records, changes, b"".join([record.checksum for record in records]))


def changed(change: Change, cause: Cause, offset: int) -> Changed:
    """Return a change with its cause, the input's offset, and the shard that applies it."""
    return Changed(change, cause, offset, _shard_of(change))


def _shard_of(change: Change) -> int | None:
    """Return the only shard that applies a change; None for all.

    Most facts are health reports that do not change the status. Only the cluster's owner shard applies them, since it
    tracks when the next report is due.
    """
    match change:
        case HealthReported(name=name, is_change=False):
            return keys.shard_of(name)
        case QuotaChanged(key=key):
            return keys.shard_of(key)
        case FactRefused(refused=refused):
            return keys.shard_of(refused.record.key)
        case _:
            return None
