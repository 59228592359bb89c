"""Random data from a JSON Schema alone, as a foreign producer would create it."""

from collections.abc import Callable
from typing import Final

from hypothesis import strategies as st

from events.json_values import as_object, list_at, object_at

Schema = dict[str, object]
Strategy = st.SearchStrategy[object]
_NAMES: Final = st.text(min_size=1, max_size=5)
_ANYTHING: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=2),
    max_leaves=4,
)
_UNDERSTOOD: Final = frozenset(
    {
        "$schema", "$id", "$defs", "$ref", "title", "description", "type", "anyOf", "enum", "default", "minimum",
        "maximum", "maxLength", "maxProperties", "properties", "required", "items", "additionalProperties",
    }
)  # fmt: skip


def values(schema: Schema, root: Schema | None = None) -> Strategy:
    """Values that a schema allows; raises ValueError for an unsupported keyword."""
    whole = schema if root is None else root
    if strange := schema.keys() - _UNDERSTOOD:
        message = f"no way to read {sorted(strange)}"
        raise ValueError(message)
    if "$ref" in schema:
        return values(_resolved(str(schema["$ref"]), whole), whole)
    if "anyOf" in schema:
        return st.one_of([values(object_at(option), whole) for option in list_at(schema, "anyOf")])
    if "enum" in schema:
        return st.sampled_from(list_at(schema, "enum"))
    make = _BY_TYPE.get(str(schema.get("type")))
    if make is None:
        message = f"no way to make a value of the type {schema['type']!r}"
        raise ValueError(message)
    return make(schema, whole)


def _objects(schema: Schema, root: Schema) -> Strategy:
    known = {
        name: values(object_at(property_schema), root)
        for name, property_schema in object_at(schema, "properties").items()
    }
    required = set(list_at(schema, "required"))
    if not known:
        extra = as_object(schema.get("additionalProperties"))
        return st.dictionaries(_NAMES, _ANYTHING if extra is None else values(extra, root), max_size=2)
    return st.fixed_dictionaries(
        {name: strategy for name, strategy in known.items() if name in required},
        optional={name: strategy for name, strategy in known.items() if name not in required},
    )


def _resolved(reference: str, root: Schema) -> Schema:
    referenced: object = root
    for name in reference.removeprefix("#/").split("/"):
        referenced = object_at(referenced)[name]
    return object_at(referenced)


def _bound(schema: Schema, name: str) -> int | None:
    bound = schema.get(name)
    return bound if isinstance(bound, int) else None


def _arrays(schema: Schema, root: Schema) -> Strategy:
    return st.lists(values(object_at(schema, "items"), root), max_size=2)


def _integers(schema: Schema, _root: Schema) -> Strategy:
    return st.integers(_bound(schema, "minimum"), _bound(schema, "maximum"))


_BY_TYPE: Final[dict[str, Callable[[Schema, Schema], Strategy]]] = {
    "None": lambda _schema, _root: _ANYTHING,
    "null": lambda _schema, _root: st.none(),
    "boolean": lambda _schema, _root: st.booleans(),
    "string": lambda schema, _root: st.text(max_size=min(_bound(schema, "maxLength") or 8, 8)),
    "integer": _integers,
    "array": _arrays,
    "object": _objects,
}
