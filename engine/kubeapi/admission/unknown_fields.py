"""Unknown fields of an object: find them, or remove them.

The caller applies the ``fieldValidation`` mode of the request (Strict, Warn, Ignore).
"""

from engine.kubeapi.patching.field_paths import schema_below
from engine.kubeapi.schema.schemas import Fields, ListOf, MapOf, Schema
from engine.kubeapi.schema.types.parsing import resolved
from events.json_values import Json, as_list, as_object, has_parts, object_at


def unknown_fields(value: object, schema: Schema) -> list[str]:
    """Return the paths of fields that the schema does not define, in document order: ``spec.containers[0].colour``."""
    return [path.removeprefix(".") for path in _unknown(value, resolved(schema))]


def _unknown(value: object, schema: Schema) -> list[str]:
    """Return paths relative to the value; paths are built on the way back, as most objects have no unknown field."""
    result: list[str] = []
    fields, items = as_object(value), as_list(value)
    if fields is not None and isinstance(schema, Fields | MapOf):
        for name, item in fields.items():
            if isinstance(schema, Fields) and name not in schema.fields:
                if not schema.open:
                    result.append(f".{name}")
            elif has_parts(item) and (below := _unknown(item, schema_below(schema, name))):
                result += [f".{name}{path}" for path in below]
    elif items is not None and isinstance(schema, ListOf):
        item_schema = resolved(schema.item)
        for index, item in enumerate(items):
            result += [f"[{index}]{path}" for path in _unknown(item, item_schema)]
    return result


def pruned(value: Json, schema: Schema) -> Json:
    """Return the object without the fields that the schema does not define."""
    result = _pruned(value, resolved(schema))
    return object_at(result)


def message(path: str) -> str:
    """Return the text of an error or warning about an unknown field."""
    return f'unknown field "{path}"'


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
