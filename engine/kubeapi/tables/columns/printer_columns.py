"""Columns of kinds that a CustomResourceDefinition defines."""

from engine.kubeapi.schema.resources import PrinterColumn
from engine.kubeapi.tables.columns.cells import Cell, Column
from engine.kubeapi.values import ages
from events import json_paths
from events.kube_objects import KubeObject


def declared(column: PrinterColumn) -> Column:
    """Return the table column for a definition's printer column.

    A cell is empty if the object has no value at the path, or one of another type than the column's; a column of
    strings shows any value as text.
    """

    def read(value: KubeObject, now_ms: int) -> Cell:
        if column.type == "string":
            return json_paths.text(value.document, column.path)
        values = json_paths.values_at(value.document, column.path)
        return _typed(values[0], column.type, now_ms) if values else None

    return Column(
        name=column.name,
        reading=read,
        type=column.type,
        format=column.format,
        description=column.description,
        priority=column.priority,
    )


def _typed(value: object, kind: str, now_ms: int) -> Cell:
    match value:
        case bool():
            return value if kind == "boolean" else None
        case int() | float() if kind == "integer":
            return int(value)
        case int() | float() if kind == "number":
            return value
        case str() if kind == "date":
            age = ages.since(value, now_ms)
            return "<invalid>" if age == ages.UNKNOWN else age
        case _:
            return None
