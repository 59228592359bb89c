"""Removal of null fields, and of empty optional values from Kubernetes' own kinds.

The API treats a null field as absent, and a null text in a map, such as a label, as an empty text. Go's typed decoding
also drops optional fields that are an empty text, list or map, zero or false, unless the type is a pointer. This module
does so too: objects are read, stored and owned without such fields. Empty structs are kept.
"""

from typing import Final

from engine.kubeapi.schema.schemas import Field, Fields, ListOf, MapOf, Scalar, Schema
from engine.kubeapi.schema.types.parsing import resolved
from events.json_values import Json, as_list, as_object, is_container, object_at

_PLAIN: Final = frozenset({"str", "int", "float", "bool", "bytes"})


def without(value: Json, schema: Schema) -> Json:
    """Return the object without null fields and empty optional values; the same object if there are none."""
    return object_at(_without(value, resolved(schema), keeps_empty=False))


def without_nulls(value: Json, schema: Schema) -> Json:
    """Return the object without the null fields that the schema defines; the same object if there are none."""
    return object_at(_without(value, resolved(schema), keeps_empty=True))


def _without(value: object, schema: Schema, *, keeps_empty: bool) -> object:
    fields, items = as_object(value), as_list(value)
    if fields is not None and isinstance(schema, Fields):
        result: Json = {}
        # Unchanged values keep their identity, so most objects are not copied.
        is_same = True
        for name, item in fields.items():
            field, kept = schema.fields.get(name), item
            if field is not None and is_container(item):
                kept = _without(item, resolved(field.schema), keeps_empty=keeps_empty)
            if field is not None and (item is None or (not keeps_empty and _is_dropped(kept, field))):
                is_same = False
                continue
            is_same = is_same and kept is item
            result[name] = kept
        return fields if is_same else result
    if fields is not None and isinstance(schema, MapOf):
        return _of_map(fields, resolved(schema.value), keeps_empty=keeps_empty)
    if items is not None and isinstance(schema, ListOf):
        below = resolved(schema.item)
        if not isinstance(below, Scalar):
            changed = [_without(item, below, keeps_empty=keeps_empty) for item in items]
            return items if all(item is two for item, two in zip(changed, items, strict=True)) else changed
    return value


def _of_map(fields: Json, below: Schema, *, keeps_empty: bool) -> Json:
    if isinstance(below, Scalar):
        is_text = below.form == "str" and None in fields.values()
        return {name: "" if item is None else item for name, item in fields.items()} if is_text else fields
    changed = {name: _without(item, below, keeps_empty=keeps_empty) for name, item in fields.items()}
    return fields if all(changed[name] is item for name, item in fields.items()) else changed


def _is_dropped(value: object, field: Field) -> bool:
    if value or field.pointer or field.required:
        return False
    match field.schema:
        case Scalar(form=form):
            return form in _PLAIN and not isinstance(value, dict | list)
        case ListOf():
            return value == []
        case MapOf():
            return value == {}
        case _:
            return False
