"""Table columns of the Karmada kinds, as in their CRDs and in the Cluster API."""

from collections.abc import Mapping
from typing import Final

from engine.kubeapi.schema.schemas import Json, as_list
from engine.kubeapi.tables.columns import (
    AGE,
    NAME,
    NONE,
    Column,
    at,
    condition,
    items,
    joined,
    since,
    text,
    wide,
    word,
)


def _when(kind: str) -> Column:
    """Column with the status of a condition, empty if the object does not have it."""
    return text(kind.upper(), lambda value, _now: condition(value, kind))


def _priority(value: Json, _now: int) -> object:
    held = at(value, "spec.priority")
    return None if held is None else str(held)


def _kinds(value: Json, _now: int) -> object:
    return " ".join(str(each.get("kind", "")) for each in items(value, "spec.workload.manifests"))


_CAPITAL_AGE: Final = Column(name="AGE", reading=since("metadata.creationTimestamp"), type="date")
_BINDING: Final = (NAME, _when("Scheduled"), _when("FullyApplied"), _CAPITAL_AGE)
_POLICY: Final = (
    NAME,
    text("CONFLICT-RESOLUTION", lambda value, _now: at(value, "spec.conflictResolution")),
    text("PRIORITY", _priority),
    _CAPITAL_AGE,
)

COLUMNS: Final[Mapping[tuple[str, str], tuple[Column, ...]]] = {
    ("cluster.karmada.io", "Cluster"): (
        NAME,
        text("Version", word("status.kubernetesVersion")),
        text("Mode", word("spec.syncMode")),
        text("Ready", lambda value, _now: condition(value, "Ready") or "Unknown"),
        AGE,
        *wide(
            text("Zones", lambda value, _now: joined(as_list(at(value, "spec.zones")) or [])),
            text("Region", word("spec.region", NONE)),
            text("Provider", word("spec.provider", NONE)),
            text("API-Endpoint", word("spec.apiEndpoint", NONE)),
            text("Proxy-URL", word("spec.proxyURL", NONE)),
        ),
    ),
    ("work.karmada.io", "ResourceBinding"): _BINDING,
    ("work.karmada.io", "ClusterResourceBinding"): _BINDING,
    ("work.karmada.io", "Work"): (NAME, text("WORKLOAD-KIND", _kinds), _when("Applied"), _CAPITAL_AGE),
    ("autoscaling.karmada.io", "FederatedHPA"): (
        NAME,
        text("REFERENCE-KIND", word("spec.scaleTargetRef.kind")),
        text("REFERENCE-NAME", word("spec.scaleTargetRef.name")),
        text("MINPODS", word("spec.minReplicas")),
        text("MAXPODS", word("spec.maxReplicas")),
        text("REPLICAS", word("status.currentReplicas")),
        _CAPITAL_AGE,
    ),
    ("autoscaling.karmada.io", "CronFederatedHPA"): (
        NAME,
        text("REFERENCE-KIND", word("spec.scaleTargetRef.kind")),
        text("REFERENCE-NAME", word("spec.scaleTargetRef.name")),
        _CAPITAL_AGE,
    ),
    ("policy.karmada.io", "PropagationPolicy"): _POLICY,
    ("policy.karmada.io", "ClusterPropagationPolicy"): _POLICY,
}
