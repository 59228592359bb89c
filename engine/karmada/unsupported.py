"""Kinds of Karmada that are stored and validated, but on which no controller acts.

Each write of such an object returns a warning. Objects of kinds with conditions also get a condition with the reason.
"""

from typing import Final

from engine.domain import bindings
from engine.objects import policies
from events.kube_fields import condition
from events.kube_objects import KubeObject
from events.validation import known_kinds

KINDS: Final = {
    (known_kinds.INTERPRETERS_GROUP, "ResourceInterpreterCustomization"): (
        "its scripts are not run; declare a ReplicaInterpreter of config.reballast.io/v1alpha1 instead"
    ),
    (known_kinds.AUTOSCALING_GROUP, "FederatedHPA"): (
        "no replicas are scaled; propagate a HorizontalPodAutoscaler to the members instead"
    ),
    (known_kinds.NETWORKING_GROUP, "MultiClusterService"): "no service is exposed across clusters",
    (known_kinds.NETWORKING_GROUP, "MultiClusterIngress"): "no traffic is routed across clusters",
    (known_kinds.REMEDY_GROUP, "Remedy"): (
        "its actions are shown in status.remedyActions of clusters, but not carried out; use a ClusterTaintPolicy"
    ),
}
"""The reason why a kind has no effect, as the end of a warning, by (API version, kind)."""

_CONDITIONS: Final = {"FederatedHPA": "ScalingActive", "MultiClusterService": "ServiceApplied"}
"""The type of the condition that reports, for objects of a kind, that no controller acts on them."""


def warnings(value: KubeObject) -> tuple[str, ...]:
    """Return a warning for each part of an object that has no effect."""
    api_version, kind = value.type_meta
    if (missing := KINDS.get((api_version, kind))) is not None:
        return (f"{kind} is stored without effect: {missing}",)
    if api_version != known_kinds.POLICY_GROUP or kind not in policies.KINDS:
        return ()
    reason = bindings.other_scheduler_reason(value.text_at("spec", "schedulerName"))
    return (f"spec.schedulerName: {reason}",) if reason else ()


def with_condition(value: KubeObject) -> KubeObject:
    """Add a condition that reports that no controller acts on the object, unless a client wrote conditions."""
    kind = value.kind
    missing = KINDS.get((value.api_version, kind))
    if missing is None or kind not in _CONDITIONS or value.at("status", "conditions"):
        return value
    since = value.text_at("metadata", "creationTimestamp") or None
    unsupported = condition(_CONDITIONS[kind], "False", "NotSupported", missing, since)
    return value.with_fields({"status": {**value.object_at("status"), "conditions": [unsupported]}})
