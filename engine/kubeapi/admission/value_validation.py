"""Validation of values by their types, as the API server validates custom resources.

Checks types, required fields and enumerations of kinds that no decider reads; the rules of other kinds are in
``events.validation.manifests``. ``unknown_fields`` finds unknown fields.
"""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.errors import causes
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.schema.schemas import Fields, ListOf, MapOf, Scalar, Schema
from engine.kubeapi.schema.types.parsing import resolved
from events.json_values import Json, as_list, as_object
from events.validation import kind_schemas

_TYPES: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "str": ("string", (str,)),
    "bytes": ("string", (str,)),
    "time": ("string", (str,)),
    "micro": ("string", (str,)),
    "int": ("integer", (int,)),
    "float": ("number", (int, float)),
    "bool": ("boolean", (bool,)),
    "quantity": ("string or number", (str, int, float)),
    "intstr": ("integer or string", (int, str)),
}
_SERVERS: Final = ("apiVersion", "kind", "metadata", "status")
"""Top-level fields that are validated elsewhere, or that clients do not write."""


def faults(value: Json, schema: Schema) -> list[Cause]:
    """Return the errors of an object's values: missing fields first, then in field order."""
    type_schema = resolved(schema)
    if not isinstance(type_schema, Fields):
        return []
    wanted = {name: field for name, field in type_schema.fields.items() if name not in _SERVERS}
    missing = [
        causes.required(name) for name, field in wanted.items() if field.required and name not in value
    ]
    wrong = [
        cause
        for name, field in wanted.items()
        if name in value
        for cause in _faults(value[name], field.schema, name)
    ]
    return [*missing, *wrong]


def _faults(value: object, schema: Schema, path: str) -> Iterator[Cause]:
    type_schema, fields, items = resolved(schema), as_object(value), as_list(value)
    match type_schema:
        case Fields() | MapOf() if fields is None:
            yield _mistyped(value, path, "object")
        case ListOf() if items is None:
            yield _mistyped(value, path, "array")
        case Fields():
            yield from _of_fields(fields or {}, type_schema, path)
        case MapOf():
            for name, item in (fields or {}).items():
                yield from _faults(item, type_schema.value, f"{path}.{name}")
        case ListOf():
            for index, item in enumerate(items or []):
                yield from _faults(item, type_schema.item, f"{path}[{index}]")
        case Scalar():
            type_word, types = _TYPES[type_schema.form]
            is_flag = isinstance(value, bool)
            if not isinstance(value, types) or (is_flag and type_schema.form != "bool"):
                yield _mistyped(value, path, type_word)
        case _:
            return


def _of_fields(held: Json, fields: Fields, path: str) -> Iterator[Cause]:
    allowed = kind_schemas.choices(fields.name)
    for name, field in fields.fields.items():
        below = f"{path}.{name}"
        value = held.get(name)
        if value is None:
            if field.required:
                yield causes.required(below)
            continue
        yield from _faults(value, field.schema, below)
        choices = allowed.get(name)
        if choices and isinstance(value, str) and value not in choices:
            yield causes.unsupported(below, value, choices)


def _mistyped(value: object, path: str, word: str) -> Cause:
    cause = causes.invalid(path, value, f"{path} in body must be of type {word}")
    return Cause(field=path, reason="FieldValueTypeInvalid", message=cause.message)
