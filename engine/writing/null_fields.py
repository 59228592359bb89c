"""Removal of null fields from objects of Kubernetes' own kinds."""

from typing import Final

from events.json_values import Json, as_list, as_object

_FOREIGN: Final = "."


def without_nulls_of_kubernetes(value: Json) -> Json:
    """Drop null fields from Kubernetes' own kinds, as its API does; in custom resources null may have a meaning."""
    group = str(value.get("apiVersion", "")).partition("/")[0]
    if _FOREIGN in group and not group.endswith(".k8s.io"):
        return value
    return {name: without_nulls(item) for name, item in value.items() if item is not None}


def without_nulls(value: object) -> object:
    """The value without null fields, at any depth."""
    fields = as_object(value)
    if fields is not None:
        return {name: without_nulls(item) for name, item in fields.items() if item is not None}
    items = as_list(value)
    return value if items is None else [without_nulls(item) for item in items]
