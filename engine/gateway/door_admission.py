"""Nulls of Kubernetes' own kinds, which mean nothing and are not kept."""

from typing import Final

from events.forms_schema import as_list, as_object

Json = dict[str, object]

_FOREIGN: Final = "."


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
