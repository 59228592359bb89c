"""Conversion of OpenAPI v3 schemas (with Kubernetes' extensions) into ``Schema``, which merging and apply use.

The input is the schema of a CustomResourceDefinition or one of the control plane's own (``kind_schemas``).
"""

from collections.abc import Mapping
from typing import Final, Literal

from engine.kubeapi.schema.schemas import (
    UNTYPED,
    Field,
    Fields,
    ListOf,
    MapOf,
    Named,
    Scalar,
    ScalarForm,
    Schema,
)
from events.json_values import Json, as_object, list_at, object_at

SCHEMA_DEPTH_MAX: Final = 64
_SCALARS: Final[Mapping[str, ScalarForm]] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
}
_OWN_FORMATS: Final[Mapping[object, ScalarForm]] = {"quantity": "quantity", "date-time": "time"}


class DefinitionError(ValueError):
    """A CustomResourceDefinition that cannot be served; ``field`` is the path of the error."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


def from_openapi(
    value: object, name: str = "", depth: int = SCHEMA_DEPTH_MAX, *, own: bool = False
) -> Schema:
    """Convert an OpenAPI v3 schema with Kubernetes extensions; raises DefinitionError if it is nested too deep.

    ``name`` is the name of the type. ``own``: the schema is one of ``kind_schemas``: ``$ref``, ``format`` and
    ``x-reballast-pointer`` are read too.
    """
    written = as_object(value)
    if depth <= 0:
        raise DefinitionError("spec.versions", f"a schema is nested deeper than {SCHEMA_DEPTH_MAX} levels")
    if written is None or written.get("x-kubernetes-int-or-string") is True:
        return UNTYPED if written is None else Scalar(form="intstr")
    if own and "$ref" in written:
        return Named(name=str(written["$ref"]))
    if own and written.get("format") in _OWN_FORMATS:
        return Scalar(form=_OWN_FORMATS[written["format"]])
    match written.get("type"):
        case "array":
            return _list(written, depth, own=own)
        case "object":
            return _object(written, name, depth, own=own)
        case str() as kind if kind in _SCALARS:
            return Scalar(form=_SCALARS[kind])
        case _:
            return UNTYPED


def _list(written: Json, depth: int, *, own: bool) -> Schema:
    item = from_openapi(written.get("items"), depth=depth - 1, own=own)
    keys = texts(written.get("x-kubernetes-list-map-keys"))
    relation: Literal["atomic", "set", "map"] = "atomic"
    match written.get("x-kubernetes-list-type"):
        case "set":
            relation = "set"
        case "map" if keys:
            relation = "map"
        case _:
            keys = ()
    return ListOf(item=item, relation=relation, keys=keys)


def _object(written: Json, name: str, depth: int, *, own: bool) -> Schema:
    if written.get("x-kubernetes-embedded-resource") is True:
        return UNTYPED
    atomic = written.get("x-kubernetes-map-type") == "atomic"
    opened = written.get("x-kubernetes-preserve-unknown-fields") is True
    properties = as_object(written.get("properties"))
    others = written.get("additionalProperties")
    if properties is None:
        if as_object(others) is not None:
            return MapOf(value=from_openapi(others, depth=depth - 1, own=own), atomic=atomic)
        if others is True or opened:
            return MapOf(value=UNTYPED, atomic=atomic)
    required = set(texts(written.get("required")))
    # Nested objects get no names. If their paths were the names, a definition with a long field name above thousands
    # of other fields would take gigabytes.
    fields = {
        field: Field(
            schema=from_openapi(schema, depth=depth - 1, own=own),
            pointer=own and _is_pointer(object_at(schema), required=field in required),
            required=field in required,
            default=None if own else _default(schema),
        )
        for field, schema in (properties or {}).items()
    }
    return Fields(name=name, fields=fields, atomic=atomic, open=opened)


def _is_pointer(written: Json, *, required: bool) -> bool:
    return written.get("x-reballast-pointer", "$ref" in written and not required) is True


def _default(schema: object) -> str | None:
    value = object_at(schema).get("default")
    return value if isinstance(value, str) else None


def texts(value: object) -> tuple[str, ...]:
    """Return the items of a list that are texts; empty if the value is not a list."""
    return tuple(item for item in list_at(value) if isinstance(item, str))
