"""Columns of Table responses, and cell functions shared by many kinds."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, TypeAlias, TypedDict

from msgspec import Struct, structs

from engine.kubeapi.schema.resources import PrinterColumn
from engine.kubeapi.values import ages, selector_texts
from events import json_paths
from events.json_values import Json, as_text
from events.kube_objects import KubeObject

NONE: Final = "<none>"
UNSET: Final = "<unset>"
_WORDS_MAX: Final = 3
"""Maximum number of words that ``first`` joins."""

Cell: TypeAlias = str | int | float | bool | None
"""The value of a cell; kubectl prints None as an empty cell."""

Reading: TypeAlias = Callable[[KubeObject, int], Cell]
"""Cell function: returns the value of a cell for an object and the current time in milliseconds."""


class ColumnDefinition(TypedDict):
    """A column in the header of a Table."""

    name: str
    type: str
    format: str
    description: str
    priority: int


class Column(Struct, frozen=True, kw_only=True):
    """One table column; kubectl shows a column of priority 1 with ``-o wide`` only."""

    name: str
    reading: Reading
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    def plain(self) -> ColumnDefinition:
        """Return the column definition of a Table."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def text(name: str, reading: Reading) -> Column:
    return Column(name=name, reading=reading)


def number(name: str, reading: Reading) -> Column:
    return Column(name=name, reading=reading, type="integer")


def flag(name: str, reading: Reading) -> Column:
    return Column(name=name, reading=reading, type="boolean")


def wide(*columns: Column) -> tuple[Column, ...]:
    """Return the columns with priority 1, so that kubectl shows them with ``-o wide`` only."""
    return tuple(structs.replace(column, priority=1) for column in columns)


def at(value: KubeObject, path: str) -> object:
    """Return the value at a dotted path, or None."""
    return value.at(*_steps(path))


def fields(value: KubeObject, path: str) -> Json:
    """Return the JSON object at a dotted path; empty if there is none."""
    return value.object_at(*_steps(path))


@lru_cache(maxsize=1_024)
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def text_at(path: str, absent: str = "") -> Reading:
    """Cell function: the text at a path, or ``absent`` if it is absent or empty."""

    def read(value: KubeObject, _now: int) -> str:
        content = at(value, path)
        return absent if content is None or content == "" else str(content)

    return read


def count(path: str) -> Reading:
    """Cell function: the number at a path, or 0."""

    def read(value: KubeObject, _now: int) -> int:
        content = at(value, path)
        return content if isinstance(content, int) else 0

    return read


def since(path: str, absent: str = ages.UNKNOWN) -> Reading:
    """Cell function: the age of the timestamp at a path; ``absent`` without a timestamp."""
    return lambda value, now: ages.since(at(value, path), now) if at(value, path) else absent


def items(value: KubeObject, path: str) -> list[Json]:
    """Return the list at a path as objects; empty if there is no list."""
    return value.objects_at(*_steps(path))


def length(path: str) -> Reading:
    """Cell function: the length of the list at a path."""
    return lambda value, _now: len(items(value, path))


def joined(words: Iterable[object], absent: str = NONE) -> str:
    """Join words with commas; return ``absent`` if there are none."""
    return ",".join(str(word) for word in words) or absent


def first(words: list[str], absent: str) -> str:
    """Join the first words with commas, and count those that are left out; return ``absent`` if there are none."""
    more = f" + {len(words) - _WORDS_MAX} more..." if len(words) > _WORDS_MAX else ""
    return joined(words[:_WORDS_MAX], absent) + more


def condition(value: KubeObject, kind: str) -> str | None:
    """Return the status of the condition of type ``kind``, or None if there is no such condition."""
    content = value.condition(kind)
    return as_text(content.get("status")) if content else None


def selector(path: str) -> Reading:
    """Cell function: the label selector at a path, in kubectl's notation."""
    return lambda value, _now: selector_texts.of(fields(value, path)) or NONE


def pairs(path: str) -> Reading:
    """Cell function: the keys and values of the map at a path, as ``app=web,tier=gold``."""
    return lambda value, _now: joined(f"{name}={item}" for name, item in sorted(fields(value, path).items()))


NAME: Final = Column(name="Name", reading=text_at("metadata.name"), format="name")
AGE: Final = text("Age", since("metadata.creationTimestamp"))
CREATED: Final = Column(name="Created At", reading=text_at("metadata.creationTimestamp"), type="date")


def of_pods(template: str, *, chosen: str = "") -> tuple[Column, ...]:
    """Return the wide columns of a workload: containers, images, and the selector if a path is passed as ``chosen``."""
    path = f"{template}.spec.containers"
    columns = [
        text("Containers", lambda value, _now: joined(item.get("name", "") for item in items(value, path))),
        text("Images", lambda value, _now: joined(item.get("image", "") for item in items(value, path))),
    ]
    if chosen:
        columns.append(text("Selector", selector(chosen)))
    return wide(*columns)


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
