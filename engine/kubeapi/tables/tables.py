"""Table responses: objects as rows for kubectl to print.

Built-in kinds have predefined columns, custom kinds their printer columns; all others have name and age.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, TypedDict

from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.tables.columns import cluster, configuration, karmada, workloads
from engine.kubeapi.tables.columns.cells import AGE, NAME, Cell, Column, ColumnDefinition, declared
from events.json_values import Json
from events.kube_fields import ListMeta
from events.kube_objects import KubeObject

Included: TypeAlias = Literal["None", "Metadata", "Object"]
"""The part of each object that its row includes (``includeObject``)."""

_COLUMNS: Final[Mapping[tuple[str, str], tuple[Column, ...]]] = {
    **cluster.COLUMNS,
    **configuration.COLUMNS,
    **workloads.COLUMNS,
    **karmada.COLUMNS,
}
_GROUP: Final = "meta.k8s.io"


class PartialObjectMetadata(TypedDict):
    """The kind, apiVersion and metadata of an object."""

    kind: str
    apiVersion: str
    metadata: Json


class _Row(TypedDict, total=False):
    cells: list[Cell]
    object: PartialObjectMetadata | Json


class Table(TypedDict):
    """A Table response: column definitions, and one row per object."""

    kind: str
    apiVersion: str
    metadata: ListMeta
    columnDefinitions: list[ColumnDefinition]
    rows: list[_Row]


def columns_of(resource: Resource) -> tuple[Column, ...]:
    if resource.columns:
        return (NAME, *(declared(column) for column in resource.columns))
    return columns_of_kind(resource.group, resource.kind)


def columns_of_kind(group: str, kind: str) -> tuple[Column, ...]:
    """The columns of a kind that is not a custom kind."""
    return _COLUMNS.get((group, kind), (NAME, AGE))


def table(
    resource: Resource,
    objects: Iterable[KubeObject],
    now_ms: int,
    *,
    metadata: ListMeta,
    version: str = "v1",
    include: Included = "Metadata",
) -> Table:
    """Return the objects as a Table (meta.k8s.io); ``metadata`` is that of the list (resourceVersion, continue)."""
    columns = columns_of(resource)
    return {
        "kind": "Table",
        "apiVersion": f"{_GROUP}/{version}",
        "metadata": metadata,
        "columnDefinitions": [column.plain() for column in columns],
        "rows": [_row(columns, shown_object, now_ms, version, include) for shown_object in objects],
    }


def partial(metadata: Json, version: str) -> PartialObjectMetadata:
    """Return a PartialObjectMetadata with this metadata; ``version`` is that of the group meta.k8s.io."""
    return {"kind": "PartialObjectMetadata", "apiVersion": f"{_GROUP}/{version}", "metadata": metadata}


def _row(
    columns: tuple[Column, ...], value: KubeObject, now_ms: int, version: str, include: Included
) -> _Row:
    row: _Row = {"cells": [column.reading(value, now_ms) for column in columns]}
    if include == "Metadata":
        # managedFields are often half of an object's metadata, and table clients do not use them.
        metadata = {**value.metadata}
        metadata.pop("managedFields", None)
        row["object"] = partial(metadata, version)
    elif include == "Object":
        row["object"] = value.document
    return row
