"""What the door does to an object before it is checked: what the server owns goes, what the API defaults comes.

The defaults are those of the reference's API server and admission, so that an object reads the same there.
"""

from typing import Final

from events import forms_kinds as kinds
from events.forms_schema import as_list, as_object

Json = dict[str, object]

_SERVER_OWNED: Final = frozenset(
    {
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_POLICY_DEFAULTS: Final[Json] = {
    "conflictResolution": "Abort",
    "preemption": "Never",
    "priority": 0,
    "schedulerName": "default-scheduler",
}
_FOREIGN: Final = "."


def clean(value: Json) -> Json:
    """The object without its status, and without the metadata that the server fills in."""
    metadata = {
        name: item
        for name, item in (as_object(value.get("metadata")) or {}).items()
        if name not in _SERVER_OWNED and item is not None
    }
    found = {name: item for name, item in value.items() if name != "status"}
    found["metadata"] = metadata
    return without_nulls_of_kubernetes(found)


def without_nulls_of_kubernetes(value: Json) -> Json:
    """The object without null fields: of its own kinds Kubernetes drops them, to others they may mean something."""
    group = str(value.get("apiVersion", "")).partition("/")[0]
    if _FOREIGN in group and not group.endswith(".k8s.io"):
        return value
    return {name: without_nulls(item) for name, item in value.items() if item is not None}


def without_nulls(value: object) -> object:
    """The value without the fields that are null, at any depth."""
    held = as_object(value)
    if held is not None:
        return {name: without_nulls(item) for name, item in held.items() if item is not None}
    items = as_list(value)
    return value if items is None else [without_nulls(item) for item in items]


def with_defaults(value: Json) -> Json:
    """The object with what the API fills in; only policies have such fields."""
    spec = as_object(value.get("spec"))
    if spec is None or kinds.route_of(str(value.get("apiVersion")), str(value.get("kind"))) != "policy":
        return value
    filled = {**_POLICY_DEFAULTS, **spec}
    if value.get("kind") == "PropagationPolicy" and "resourceSelectors" in spec:
        namespace = (as_object(value.get("metadata")) or {}).get("namespace")
        filled["resourceSelectors"] = _each(spec.get("resourceSelectors"), {"namespace": namespace})
    if as_object((as_object(spec.get("failover")) or {}).get("application")) is not None:
        filled["propagateDeps"] = True
    placement = as_object(spec.get("placement"))
    if placement is not None:
        filled["placement"] = _placement(placement)
    return {**value, "spec": filled}


def _placement(placement: Json) -> Json:
    filled = dict(placement)
    constraints = as_list(placement.get("spreadConstraints"))
    if constraints is not None:
        filled["spreadConstraints"] = [_constraint(item) for item in constraints]
    scheduling = as_object(placement.get("replicaScheduling"))
    if scheduling is not None:
        scheduling = {"replicaSchedulingType": "Divided", **scheduling}
        if scheduling["replicaSchedulingType"] == "Divided":
            scheduling = {"replicaDivisionPreference": "Weighted", **scheduling}
        filled["replicaScheduling"] = scheduling
    return filled


def _constraint(value: object) -> object:
    constraint = as_object(value)
    if constraint is None:
        return value
    filled = dict(constraint)
    if not constraint.get("spreadByField") and not constraint.get("spreadByLabel"):
        filled["spreadByField"] = "cluster"
    if constraint.get("minGroups", 0) == 0:
        filled["minGroups"] = 1
    return filled


def _each(value: object, defaults: Json) -> object:
    """Each object of a list with defaults; an empty text counts as absent."""
    items = as_list(value)
    if items is None:
        return value
    return [
        item
        if (held := as_object(item)) is None
        else {**held, **{n: d for n, d in defaults.items() if not held.get(n)}}
        for item in items
    ]
