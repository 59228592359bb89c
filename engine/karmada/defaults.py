"""Defaults of the Karmada kinds, as Karmada's API server and admission webhooks set them.

Labels, finalizers and ids are not added here: the fold of the log derives them. A policy's ``placement`` and an
OverridePolicy's ``overriders`` are always set, if only to ``{}``, so that clients can patch their fields.
"""

from typing import Final

from engine.karmada import default_tolerations, resource_models
from engine.karmada.default_tolerations import TolerationSeconds
from engine.kubeapi.values.taints import Effect
from engine.objects import policies
from engine.objects.placements import DivisionPreference, SchedulingType
from events import times
from events.json_values import Json, as_list, as_object, object_at
from events.kube_objects import KubeObject
from events.validation import kind_schemas, kinds_table, known_kinds

_GRACE_SECONDS: Final = 600
_TYPES: Final = {
    (row.api_version, row.kind): f"{row.package}.{row.kind}" for row in kinds_table.rows(kinds_table.KARMADA)
}
_LEFT_TO_POLICIES: Final = TolerationSeconds()


def with_defaults(
    value: KubeObject, now_ms: int | None = None, tolerated: TolerationSeconds = _LEFT_TO_POLICIES
) -> KubeObject:
    """Return the object with defaults; templates and malformed objects are unchanged.

    ``now_ms`` becomes the time of NoExecute taints without one; if it is None, Clusters get no defaults.
    ``tolerated`` has the toleration times that are added to policies.
    """
    kind, type_name = value.kind, _TYPES.get(value.type_meta)
    if type_name is None or as_object(value.at("spec")) is None:
        return value
    value = KubeObject(_static(value.document, type_name))
    match value.api_version:
        case known_kinds.POLICY_GROUP if kind in policies.KINDS:
            return _policy(default_tolerations.with_tolerations(value, tolerated))
        case known_kinds.POLICY_GROUP if kind == "OverridePolicy":
            selected = _selected(value)
            return selected.with_fields({"spec": {"overriders": {}, **selected.object_at("spec")}})
        case known_kinds.CLUSTER_GROUP if kind == "Cluster" and now_ms is not None:
            return _cluster(value, now_ms)
        case _:
            return value


def _policy(value: KubeObject) -> KubeObject:
    filled = dict(_selected(value).object_at("spec"))
    placement = as_object(filled.setdefault("placement", {}))
    if placement is not None:
        filled["placement"] = _placement(placement)
    # ``_static`` has copied the nested objects, so they may be changed in place.
    application = object_at(filled, "failover", "application")
    if application.get("purgeMode") in policies.GRACEFUL:
        application.setdefault("gracePeriodSeconds", _GRACE_SECONDS)
    if any(
        selector.get("kind") == "ServiceImport" for selector in value.objects_at("spec", "resourceSelectors")
    ):
        filled["propagateDeps"] = True
    return value.with_fields({"spec": filled})


def _static(value: Json, name: str) -> Json:
    """Return an object with the fixed defaults of the type ``name`` and of nested objects, but not of list items.

    Defaults come before the other fields, in alphabetical order. Recorded objects have this order, so keep it.
    """
    written = object_at(kind_schemas.types()[name], "properties")
    fields = {field: object_at(field_value) for field, field_value in written.items()}
    defaults = {field: fields[field]["default"] for field in sorted(fields) if "default" in fields[field]}
    filled = {**defaults, **value}
    for field, schema in fields.items():
        below, type_name = as_object(filled.get(field)), str(schema.get("$ref"))
        if below is not None and type_name in kind_schemas.types():
            filled[field] = _static(below, type_name)
    return filled


def _selected(value: KubeObject) -> KubeObject:
    """Set the namespace of selectors without one to the policy's namespace; cluster-scoped policies stay unchanged."""
    namespace = value.namespace
    selectors = as_list(value.at("spec", "resourceSelectors"))
    if selectors is None or not namespace:
        return value
    filled = [
        item
        if (selector := as_object(item)) is None or selector.get("namespace")
        else {**selector, "namespace": namespace}
        for item in selectors
    ]
    return value.with_fields({"spec": {**value.object_at("spec"), "resourceSelectors": filled}})


def _placement(placement: Json) -> Json:
    filled = dict(placement)
    constraints = as_list(placement.get("spreadConstraints"))
    if constraints is not None:
        filled["spreadConstraints"] = [_constraint(item) for item in constraints]
    scheduling = as_object(placement.get("replicaScheduling"))
    if (
        scheduling is not None
        and scheduling["replicaSchedulingType"] == SchedulingType.DIVIDED
        and not scheduling.get("replicaDivisionPreference")
    ):
        filled["replicaScheduling"] = {
            **scheduling,
            "replicaDivisionPreference": DivisionPreference.WEIGHTED.value,
        }
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


def _cluster(value: KubeObject, now_ms: int) -> KubeObject:
    """Complete the resource models, and set ``timeAdded`` of NoExecute taints: toleration periods begin then."""
    spec = resource_models.with_defaults(value.object_at("spec"))
    taints = as_list(spec.get("taints"))
    if taints is None:
        return value.with_fields({"spec": spec})
    stamp = times.to_seconds_text(now_ms)
    filled = [
        {**taint, "timeAdded": stamp}
        if (taint := as_object(item)) is not None
        and taint.get("effect") == Effect.NO_EXECUTE
        and not taint.get("timeAdded")
        else item
        for item in taints
    ]
    return value.with_fields({"spec": {**spec, "taints": filled}})
