"""What the door does to an object before it is checked: what the server owns goes, and what means nothing.

What the API fills in is in ``engine.kube.karmada_defaults``, the same for all doors.
"""

from typing import Final

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
