"""Unknown fields and invalid values of an object, by the schema of its kind.

Unknown fields are returned or removed; the caller applies the ``fieldValidation`` mode of the request (Strict, Warn,
Ignore). Values are validated as the API server validates custom resources (``structural``). Only kinds that no decider
reads are validated here. The rules of the other kinds are in ``events.validation.manifests``.
"""

from functools import cache
from typing import Final

from engine.kubeapi.admission import structural
from engine.kubeapi.errors.messages import bounded
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.schema.schemas import Fields, ListOf, MapOf, Named, Scalar, Schema
from engine.kubeapi.schema.types.parsing import named, resolved, schema_below
from events import limits
from events.json_values import Json, as_list, as_object, is_container, object_at
from events.validation import kind_schemas

_TYPES: Final = {
    **dict.fromkeys(("str", "bytes", "time", "micro"), "string"),
    "int": "integer",
    "float": "number",
    "bool": "boolean",
}


def unknown_fields(value: object, schema: Schema) -> list[str]:
    """Return the paths of fields that the schema does not define, in document order: ``spec.containers[0].colour``.

    As in Kubernetes, at most 100 of them.
    """
    return [path.removeprefix(".") for path in _unknown(value, resolved(schema))]


def _unknown(value: object, schema: Schema) -> list[str]:
    """Return the paths of unknown fields, relative to the value.

    Most objects have no unknown field, so the path of a nested value is only built if the value has one.
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
    """Return the errors of an object's values, as if its schema were that of a custom kind."""
    return bounded(structural.faults(value, _structure(schema.name))) if isinstance(schema, Named) else []


@cache
def _structure(name: str, above: frozenset[str] = frozenset()) -> Json:
    """Return a type's schema with its references resolved; where a type contains itself, any value is allowed."""
    if name in above:
        return {}
    inside = above | {name}
    written = kind_schemas.types().get(name)
    return _of_schema(named(name), inside) if written is None else _of_written(written, inside)


def _of_written(written: Json, above: frozenset[str]) -> Json:
    """Return a written schema of the control plane's kinds with its references resolved."""
    if "$ref" in written:
        return _structure(str(written["$ref"]), above)
    if written.get("format") == "quantity":
        return {"x-kubernetes-int-or-string": True}
    below: Json = {
        key: _of_written(object_at(written, key), above)
        for key in ("items", "additionalProperties")
        if as_object(written.get(key)) is not None
    }
    fields = object_at(written, "properties")
    properties = {name: _of_written(object_at(field), above) for name, field in fields.items()}
    return {**written, **below, "properties": properties}


def _of_schema(schema: Schema, above: frozenset[str]) -> Json:
    """Convert a schema of Kubernetes' own kinds; scalars need few rules, since decoding checks their types first."""
    match schema:
        case Named():
            return _structure(schema.name, above)
        case Fields():
            return {
                "type": "object",
                "properties": {
                    name: _of_schema(field.schema, above) for name, field in schema.fields.items()
                },
                "required": [name for name, field in schema.fields.items() if field.required],
            }
        case ListOf():
            return {"type": "array", "items": _of_schema(schema.item, above)}
        case MapOf():
            return {"type": "object", "additionalProperties": _of_schema(schema.value, above)}
        case Scalar():
            return {"type": _TYPES[schema.form]} if schema.form in _TYPES else {}
        case _:
            return {}
