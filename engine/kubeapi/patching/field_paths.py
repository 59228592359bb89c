"""Decompose an object into the paths of its fields, for field ownership.

The rules are those of Kubernetes' structured merge: scalars, atomic values and empty objects are leaves;
items of lists and entries of maps are owned in addition to their content.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.kubeapi.patching import managed_fields
from engine.kubeapi.patching.managed_fields import FieldSet, Path, step_of
from engine.kubeapi.schema.schemas import Fields, ListOf, MapOf, Scalar, Schema
from engine.kubeapi.schema.types.parsing import resolved, schema_below
from events.json_values import Json, as_list, as_object, is_container

OWNED_ENTRY: Final = object()
"""Value in ``content_by_path`` for a list item or map entry: its path is owned, and so are the paths of its content."""

CONTAINER: Final = object()
"""Value in ``content_by_path`` for an object or list with content: only an update that adds it owns its path."""


_TYPE_NAMES: Final[Mapping[type, str]] = {
    bool: "bool",
    dict: "map",
    float: "float64",
    int: "int64",
    list: "list",
    str: "string",
}

_TEXT: Final = ("string", (str,))

_NUMBER: Final = ("numeric (int or float)", (int, float))

_SCALARS: Final[Mapping[str, tuple[str, tuple[type, ...]]]] = {
    "bool": ("boolean", (bool,)),
    "bytes": _TEXT,
    "float": _NUMBER,
    "int": _NUMBER,
    "micro": _TEXT,
    "str": _TEXT,
    "time": _TEXT,
}
"""By scalar form: the name of the type in error messages, and the Python types of valid values.

Other forms accept any scalar.
"""


class TypingError(ValueError):
    """An object that does not conform to its type; path and reason are worded as in Kubernetes."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{managed_fields.shown_path(path)}: {reason}")
        self.path = path
        self.reason = reason


def content_by_path(value: object, schema: Schema) -> dict[Path, object]:
    """Return every path of an object: leaves with their value, others with OWNED_ENTRY or CONTAINER.

    Values that do not conform to the schema are leaves.
    """
    result: dict[Path, object] = {}
    _collect(result, value, resolved(schema), ())
    result.pop((), None)
    return result


def owned(value: object, schema: Schema) -> FieldSet:
    """Return the paths that an applier of this object owns."""
    return frozenset(
        path for path, content in content_by_path(value, schema).items() if content is not CONTAINER
    )


def same(value: object, other: object) -> bool:
    """JSON equality: unlike in Python, true does not equal 1."""
    first, second = as_object(value), as_object(other)
    if first is not None and second is not None:
        return first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)
    items, others = as_list(value), as_list(other)
    if items is not None and others is not None:
        return len(items) == len(others) and all(map(same, items, others))
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def check(value: object, schema: Schema, path: Path = ()) -> Iterator[TypingError]:
    """Yield the errors that prevent an apply: unknown fields, wrong types, list items with bad or duplicate keys."""
    schema = resolved(schema)
    if value is None:
        return
    match schema:
        case Fields() | MapOf():
            yield from _check_object(value, schema, path)
        case ListOf():
            yield from _check_list(value, schema, path)
        case Scalar():
            type_name, types = _SCALARS.get(schema.form, ("scalar", (str, int, float, bool)))
            if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
                yield TypingError(path, f"expected {type_name}, got {_key_text(value)}")
        case _:
            return


def _collect(collected: dict[Path, object], value: object, schema: Schema, path: Path) -> None:
    fields, items = as_object(value), as_list(value)
    if schema.atomic or (fields is None and items is None):
        collected[path] = value
    elif fields is not None:
        _collect_object(collected, fields, schema, path)
    elif items is not None:
        _collect_list(collected, items, schema, path)


def _collect_object(collected: dict[Path, object], document: Json, schema: Schema, path: Path) -> None:
    collected.setdefault(path, CONTAINER if document else document)
    known = schema if isinstance(schema, Fields) else None
    for name, value in document.items():
        below = (*path, managed_fields.field_step(name))
        if not is_container(value):
            collected[below] = value  # a scalar is a leaf even where the schema expects an object
            continue
        if known is None or name not in known.fields:
            collected[below] = OWNED_ENTRY
        _collect(collected, value, schema_below(schema, name), below)


def _collect_list(collected: dict[Path, object], items: list[object], schema: Schema, path: Path) -> None:
    steps = [step_of(item, schema) for item in items] if isinstance(schema, ListOf) else [None]
    if not isinstance(schema, ListOf) or None in steps:
        # If some items cannot be identified, the list is owned as a whole.
        collected[path] = items
        return
    collected.setdefault(path, CONTAINER)
    item_schema = resolved(schema.item)
    for step, item in zip(steps, items, strict=True):
        below = (*path, step or "")
        collected[below] = OWNED_ENTRY
        if schema.relation == "map":
            _collect(collected, item, item_schema, below)


def _check_object(value: object, schema: Fields | MapOf, path: Path) -> Iterator[TypingError]:
    fields = as_object(value)
    if fields is None:
        yield TypingError(path, f"expected map, got {_key_text(value)}")
        return
    for name, item in fields.items():
        below = (*path, managed_fields.field_step(name))
        if isinstance(schema, Fields) and name not in schema.fields:
            if not schema.open:
                yield TypingError(below, "field not declared in schema")
            continue
        yield from check(item, schema_below(schema, name), below)


def _check_list(value: object, schema: ListOf, path: Path) -> Iterator[TypingError]:
    items = as_list(value)
    if items is None:
        yield TypingError(path, f"expected list, got {_key_text(value)}")
        return
    seen: set[str] = set()
    for index, item in enumerate(items):
        step = f"i:{index}"
        if schema.relation != "atomic":
            key = step_of(item, schema)
            if key is None:
                reason = f"element {index}: associative list with keys has an element that omits a key field"
                yield TypingError(path, reason)
                continue
            if key in seen:
                yield TypingError(path, f"duplicate entries for key {managed_fields.shown_path((key,))}")
            seen.add(key)
            step = key
        yield from check(item, schema.item, (*path, step))


def _key_text(value: object) -> str:
    return _TYPE_NAMES.get(type(value), "scalar")
