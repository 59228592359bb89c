"""Table columns of the Karmada kinds, as in their CRDs and in the Cluster API."""

from collections.abc import Mapping
from typing import Final

from engine.kubeapi.tables.columns.cells import (
    AGE,
    NAME,
    NONE,
    Column,
    condition,
    items,
    joined,
    optional,
    since,
    text,
    text_at,
    wide,
)
from events.kube_objects import KubeObject


def _when(kind: str) -> Column:
    """Column with the status of the condition of type ``kind``; empty if the object has no such condition."""
    return text(kind.upper(), lambda value, _now: condition(value, kind))


def _kinds(value: KubeObject, _now: int) -> str:
    return " ".join(str(manifest.get("kind", "")) for manifest in items(value, "spec.workload.manifests"))


_CAPITAL_AGE: Final = Column(name="AGE", reading=since("metadata.creationTimestamp"), type="date")
_BINDING: Final = (NAME, _when("Scheduled"), _when("FullyApplied"), _CAPITAL_AGE)
_POLICY: Final = (
    NAME,
    text("CONFLICT-RESOLUTION", optional("spec.conflictResolution")),
    text("PRIORITY", optional("spec.priority")),
    _CAPITAL_AGE,
)

COLUMNS: Final[Mapping[tuple[str, str], tuple[Column, ...]]] = {
    ("cluster.karmada.io", "Cluster"): (
        NAME,
        text("Version", text_at("status.kubernetesVersion")),
        text("Mode", text_at("spec.syncMode")),
        text("Ready", lambda value, _now: condition(value, "Ready") or "Unknown"),
        AGE,
        *wide(
            text("Zones", lambda value, _now: joined(value.list_at("spec", "zones"))),
            text("Region", text_at("spec.region", NONE)),
            text("Provider", text_at("spec.provider", NONE)),
            text("API-Endpoint", text_at("spec.apiEndpoint", NONE)),
            text("Proxy-URL", text_at("spec.proxyURL", NONE)),
        ),
    ),
    ("work.karmada.io", "ResourceBinding"): _BINDING,
    ("work.karmada.io", "ClusterResourceBinding"): _BINDING,
    ("work.karmada.io", "Work"): (NAME, text("WORKLOAD-KIND", _kinds), _when("Applied"), _CAPITAL_AGE),
    ("autoscaling.karmada.io", "FederatedHPA"): (
        NAME,
        text("REFERENCE-KIND", text_at("spec.scaleTargetRef.kind")),
        text("REFERENCE-NAME", text_at("spec.scaleTargetRef.name")),
        text("MINPODS", text_at("spec.minReplicas")),
        text("MAXPODS", text_at("spec.maxReplicas")),
        text("REPLICAS", text_at("status.currentReplicas")),
        _CAPITAL_AGE,
    ),
    ("autoscaling.karmada.io", "CronFederatedHPA"): (
        NAME,
        text("REFERENCE-KIND", text_at("spec.scaleTargetRef.kind")),
        text("REFERENCE-NAME", text_at("spec.scaleTargetRef.name")),
        _CAPITAL_AGE,
    ),
    ("policy.karmada.io", "PropagationPolicy"): _POLICY,
    ("policy.karmada.io", "ClusterPropagationPolicy"): _POLICY,
}
