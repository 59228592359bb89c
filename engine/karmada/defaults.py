"""Defaults of the Karmada kinds, as Karmada's API server and admission webhooks set them.

Labels, finalizers and ids that the fold derives are not added here.
"""

from typing import Final

from engine.karmada import default_tolerations
from engine.karmada.default_tolerations import TolerationSeconds
from engine.objects import policies
from events import times
from events.json_values import Json, as_list, as_object, as_objects
from events.validation import known_kinds

_POLICY: Final[Json] = {
    "conflictResolution": "Abort",
    "preemption": "Never",
    "priority": 0,
    "schedulerName": "default-scheduler",
}
_GRACEFUL: Final = ("Gracefully", "Graciously")
_GRACE_SECONDS: Final = 600
_POLICY_KINDS: Final = ("PropagationPolicy", "ClusterPropagationPolicy")
_OVERRIDE_KINDS: Final = ("OverridePolicy", "ClusterOverridePolicy")


_LEFT_TO_POLICIES: Final = TolerationSeconds()


def with_defaults(
    value: Json, now_ms: int | None = None, tolerated: TolerationSeconds = _LEFT_TO_POLICIES
) -> Json:
    """Return the object with defaults; templates and malformed objects are unchanged.

    ``now_ms`` is the time of new NoExecute taints; without it clusters get no defaults. ``tolerated`` are the
    default toleration times of policies.
    """
    spec = as_object(value.get("spec"))
    kind = value.get("kind")
    if spec is None:
        return value
    match value.get("apiVersion"):
        case known_kinds.POLICY_GROUP if kind in _POLICY_KINDS:
            return {
                **value,
                "spec": _policy(default_tolerations.with_tolerations(spec, tolerated), _namespace(value)),
            }
        case known_kinds.POLICY_GROUP if kind in _OVERRIDE_KINDS:
            return {**value, "spec": _selected(spec, _namespace(value))}
        case known_kinds.CLUSTER_GROUP if kind == "Cluster" and now_ms is not None:
            return {**value, "spec": _cluster(spec, now_ms)}
        case _:
            return value


def _policy(spec: Json, namespace: str) -> Json:
    filled = {**_POLICY, **_selected(spec, namespace)}
    placement = as_object(spec.get("placement"))
    if placement is not None:
        filled["placement"] = _placement(placement)
    failover = as_object(spec.get("failover"))
    if failover is not None:
        filled["failover"] = _failover(failover)
        if as_object(failover.get("application")) is not None:
            filled["propagateDeps"] = True
    if any(each.get("kind") == "ServiceImport" for each in as_objects(spec.get("resourceSelectors"))):
        filled["propagateDeps"] = True
    return filled


def _selected(spec: Json, namespace: str) -> Json:
    """Default the namespace of the selectors of a namespaced policy to the policy's own."""
    selectors = as_list(spec.get("resourceSelectors"))
    if selectors is None or not namespace:
        return spec
    filled = [
        item
        if (selector := as_object(item)) is None or selector.get("namespace")
        else {**selector, "namespace": namespace}
        for item in selectors
    ]
    return {**spec, "resourceSelectors": filled}


def _placement(placement: Json) -> Json:
    filled = dict(placement)
    constraints = as_list(placement.get("spreadConstraints"))
    if constraints is not None:
        filled["spreadConstraints"] = [_constraint(item) for item in constraints]
    scheduling = as_object(placement.get("replicaScheduling"))
    if scheduling is not None:
        scheduling = {"replicaSchedulingType": "Divided", **scheduling}
        if scheduling["replicaSchedulingType"] == "Divided" and not scheduling.get(
            "replicaDivisionPreference"
        ):
            scheduling["replicaDivisionPreference"] = "Weighted"
        filled["replicaScheduling"] = scheduling
    return filled


def _constraint(item: object) -> object:
    constraint = as_object(item)
    if constraint is None:
        return item
    filled = dict(constraint)
    if not constraint.get("spreadByField") and not constraint.get("spreadByLabel"):
        filled["spreadByField"] = "cluster"
    if constraint.get("minGroups", 0) == 0:
        filled["minGroups"] = 1
    return filled


def _failover(failover: Json) -> Json:
    filled = dict(failover)
    cluster = as_object(failover.get("cluster"))
    if cluster is not None:
        filled["cluster"] = {"purgeMode": "Gracefully", **cluster}
    application = as_object(failover.get("application"))
    if application is not None:
        application = {"purgeMode": "Gracefully", **application}
        conditions = as_object(application.get("decisionConditions"))
        if conditions is not None:
            application["decisionConditions"] = {
                "tolerationSeconds": policies.TOLERATION_SECONDS,
                **conditions,
            }
        if application["purgeMode"] in _GRACEFUL:
            application.setdefault("gracePeriodSeconds", _GRACE_SECONDS)
        filled["application"] = application
    return filled


def _cluster(spec: Json, now_ms: int) -> Json:
    """Set ``timeAdded`` of NoExecute taints, from which ``tolerationSeconds`` count."""
    taints = as_list(spec.get("taints"))
    if taints is None:
        return spec
    stamp = times.to_seconds_text(now_ms)
    filled = [
        {**taint, "timeAdded": stamp}
        if (taint := as_object(item)) is not None
        and taint.get("effect") == "NoExecute"
        and not taint.get("timeAdded")
        else item
        for item in taints
    ]
    return {**spec, "taints": filled}


def _namespace(value: Json) -> str:
    namespace = (as_object(value.get("metadata")) or {}).get("namespace")
    return namespace if isinstance(namespace, str) else ""
