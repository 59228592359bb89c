"""Table columns of the Karmada kinds, as in their CRDs and in the Cluster API."""

from collections.abc import Mapping
from typing import Final

from engine.kubeapi.schema.resources import PrinterColumn
from engine.kubeapi.tables.columns.cells import (
    AGE,
    NAME,
    NONE,
    Column,
    condition,
    declared,
    joined,
    text,
    text_at,
    wide,
)


def _at(name: str, path: str, kind: str = "string") -> Column:
    return declared(PrinterColumn(name=name, path=path, type=kind))


def _condition(kind: str) -> Column:
    """Column with the status of the condition of type ``kind``; empty if the object has no such condition."""
    return text(kind.upper(), lambda value, _now: condition(value, kind))


_CAPITAL_AGE: Final = _at("AGE", ".metadata.creationTimestamp", "date")
_BINDING: Final = (NAME, _condition("Scheduled"), _condition("FullyApplied"), _CAPITAL_AGE)
_POLICY: Final = (
    NAME,
    _at("CONFLICT-RESOLUTION", ".spec.conflictResolution"),
    _at("PRIORITY", ".spec.priority"),
    _CAPITAL_AGE,
)
_SCALED: Final = (
    _at("REFERENCE-KIND", ".spec.scaleTargetRef.kind"),
    _at("REFERENCE-NAME", ".spec.scaleTargetRef.name"),
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
            text("API-Endpoint", text_at("spec.apiEndpoint")),
            text("Proxy-URL", text_at("spec.proxyURL", NONE)),
        ),
    ),
    ("work.karmada.io", "ResourceBinding"): _BINDING,
    ("work.karmada.io", "ClusterResourceBinding"): _BINDING,
    ("work.karmada.io", "Work"): (
        NAME,
        _at("WORKLOAD-KIND", ".spec.workload.manifests[*].kind"),
        _condition("Applied"),
        _CAPITAL_AGE,
    ),
    ("autoscaling.karmada.io", "FederatedHPA"): (
        NAME,
        *_SCALED,
        _at("MINPODS", ".spec.minReplicas", "integer"),
        _at("MAXPODS", ".spec.maxReplicas", "integer"),
        _at("REPLICAS", ".status.currentReplicas", "integer"),
        _CAPITAL_AGE,
    ),
    ("autoscaling.karmada.io", "CronFederatedHPA"): (NAME, *_SCALED, _CAPITAL_AGE),
    ("config.karmada.io", "ResourceInterpreterCustomization"): (
        NAME,
        _at("TARGET-API-VERSION", ".spec.target.apiVersion"),
        _at("TARGET-KIND", ".spec.target.kind"),
        _CAPITAL_AGE,
    ),
    ("policy.karmada.io", "FederatedResourceQuota"): (
        NAME,
        _at("OVERALL", ".status.overall"),
        _at("OVERALL_USED", ".status.overallUsed"),
    ),
    ("policy.karmada.io", "PropagationPolicy"): _POLICY,
    ("policy.karmada.io", "ClusterPropagationPolicy"): _POLICY,
}
