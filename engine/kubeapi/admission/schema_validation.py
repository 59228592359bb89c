"""Unknown fields and invalid values of an object, by the schema of its kind.

Unknown fields are returned or removed; the caller applies the ``fieldValidation`` mode of the request (Strict, Warn,
Ignore). Values are validated as the API server validates custom resources: types, required fields and enumerations.
Only kinds that no decider reads are validated here. The rules of the other kinds are in
``events.validation.manifests``.
"""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.errors import causes
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.schema.schemas import Fields, ListOf, MapOf, Scalar, Schema
from engine.kubeapi.schema.types.parsing import resolved, schema_below
from events import limits
from events.json_values import Json, as_list, as_object, is_container, object_at
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
"""Top-level fields that ``value_faults`` skips, because they are validated elsewhere or not written by clients."""


def unknown_fields(value: object, schema: Schema) -> list[str]:
    """Return the paths of fields that the schema does not define, in document order: ``spec.containers[0].colour``.

    As in Kubernetes, at most 100 of them.
    """
    return [path.removeprefix(".") for path in _unknown(value, resolved(schema))]


def _unknown(value: object, schema: Schema) -> list[str]:
    """Return the paths of unknown fields, relative to the value.

    Most objects have no unknown field, so a path is only built once one is found below it.
    """
    result: list[str] = []
    fields, items = as_object(value), as_list(value)
    if fields is not None and isinstance(schema, Fields | MapOf):
        for name, item in fields.items():
            if len(result) >= limits.LISTED_FIELDS_MAX:
                break
            if isinstance(schema, Fields) and name not in schema.fields:
                if not schema.open:
                    result.append(f".{name}")
            elif is_container(item) and (below := _unknown(item, schema_below(schema, name))):
                result += [f".{name}{path}" for path in below]
    elif items is not None and isinstance(schema, ListOf):
        item_schema = resolved(schema.item)
        for index, item in enumerate(items):
            if len(result) >= limits.LISTED_FIELDS_MAX:
                break
            result += [f"[{index}]{path}" for path in _unknown(item, item_schema)]
    return result[: limits.LISTED_FIELDS_MAX]


def pruned(value: Json, schema: Schema) -> Json:
    """Return the object without the fields that the schema does not define."""
    result = _pruned(value, resolved(schema))
    return object_at(result)


def _pruned(value: object, schema: Schema) -> object:
    fields, items = as_object(value), as_list(value)
    if fields is not None and isinstance(schema, Fields | MapOf):
        return {
            name: _pruned(item, schema_below(schema, name))
            for name, item in fields.items()
            if not isinstance(schema, Fields) or schema.open or name in schema.fields
        }
    if items is not None and isinstance(schema, ListOf):
        item_schema = resolved(schema.item)
        return [_pruned(item, item_schema) for item in items]
    return value


def value_faults(value: Json, schema: Schema) -> list[Cause]:
    """Return the errors of an object's values: missing fields first, then in field order."""
    type_schema = resolved(schema)
    if not isinstance(type_schema, Fields):
        return []
    fields = {name: field for name, field in type_schema.fields.items() if name not in _SERVERS}
    missing = [
        causes.required(name) for name, field in fields.items() if field.required and name not in value
    ]
    wrong = [
        cause
        for name, field in fields.items()
        if name in value
        for cause in _value_faults(value[name], field.schema, name)
    ]
    return [*missing, *wrong]


def _value_faults(value: object, schema: Schema, path: str) -> Iterator[Cause]:
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
                yield from _value_faults(item, type_schema.value, f"{path}.{name}")
        case ListOf():
            for index, item in enumerate(items or []):
                yield from _value_faults(item, type_schema.item, f"{path}[{index}]")
        case Scalar():
            type_word, types = _TYPES[type_schema.form]
            is_flag = isinstance(value, bool)
            if not isinstance(value, types) or (is_flag and type_schema.form != "bool"):
                yield _mistyped(value, path, type_word)
        case _:
            return


def _of_fields(document: Json, fields: Fields, path: str) -> Iterator[Cause]:
    allowed = kind_schemas.choices(fields.name)
    for name, field in fields.fields.items():
        below = f"{path}.{name}"
        value = document.get(name)
        if value is None:
            if field.required:
                yield causes.required(below)
            continue
        yield from _value_faults(value, field.schema, below)
        choices = allowed.get(name)
        if choices and isinstance(value, str) and value not in choices:
            yield causes.unsupported(below, value, choices)


def _mistyped(value: object, path: str, word: str) -> Cause:
    cause = causes.invalid(path, value, f"{path} in body must be of type {word}")
    return Cause(field=path, reason="FieldValueTypeInvalid", message=cause.message)
