"""Schemas of the control plane's kinds, from the YAML files in ``kinds``, and the forms derived from them.

A file maps names of types, such as ``policy.karmada.Placement``, to OpenAPI v3 schemas with Kubernetes'
extensions. The Kubernetes API takes its types and the texts of ``kubectl explain`` from the same files.

``$ref`` is the name of a type; keys beside it belong to the field. ``allOf`` adds the fields of other types:
before the type's own fields if it precedes ``properties``, otherwise after them. ``format`` is the width of an
integer or the syntax of a string (``names.FORMATS``). ``default`` is what the write API sets
(``engine.karmada.defaults``). Reballast's own extensions, all of them of fields:

- ``x-reballast-optional``: the API requires the field, but a record may omit it.
- ``x-reballast-form``: the schema by which records are checked, if it differs from that of the API.
- ``x-reballast-pointer``: whether an absent value differs from zero. By default, it does for optional references and
  does not for other fields.
"""

from collections import ChainMap
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from events.json_values import Json, object_at, objects_at
from events.validation import names
from events.validation.schema import AnyValue, Fields, Flag, Form, Integer, List, Table, Text

_KUBERNETES: Final = "kubernetes.yaml"
"""File with the parts of Kubernetes' own types that forms need; ``types`` leaves it out."""

_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


class Schema(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A schema as it is written; without a type it allows any value."""

    type: Literal["object", "array", "string", "integer", "boolean", ""] = ""
    format: str = ""
    description: str = ""
    enum: tuple[str, ...] = ()
    default: str | int | bool | None = None
    min_length: Literal[0, 1] = 0
    min_items: int = 0
    minimum: int | None = None
    maximum: int | None = None
    required: tuple[str, ...] = ()
    properties: "dict[str, Schema]" = {}
    additional_properties: "Schema | None" = None
    items: "Schema | None" = None
    list_type: Literal["atomic", "set", "map"] = field(default="atomic", name="x-kubernetes-list-type")
    list_keys: tuple[str, ...] = field(default=(), name="x-kubernetes-list-map-keys")
    map_type: Literal["granular", "atomic"] = field(default="granular", name="x-kubernetes-map-type")
    preserved: bool = field(default=False, name="x-kubernetes-preserve-unknown-fields")
    ref: str = field(default="", name="$ref")
    form: "Schema | None" = field(default=None, name="x-reballast-form")
    optional: bool = field(default=False, name="x-reballast-optional")
    pointer: bool | None = field(default=None, name="x-reballast-pointer")


@cache
def types() -> Mapping[str, Json]:
    """Return the schemas of all types but Kubernetes' own, by name, each with the fields of its ``allOf``."""
    return {
        name: _merged(name) for file, schemas in _files().items() if file != _KUBERNETES for name in schemas
    }


@cache
def form(name: str) -> Fields:
    """Return the form of a type, with which its values are checked."""
    return _fields(msgspec.convert(_merged(name), Schema))


@cache
def _files() -> dict[str, dict[str, Json]]:
    folder = resources.files("events.validation") / "kinds"
    return {
        file.name: msgspec.yaml.decode(file.read_bytes(), type=dict[str, dict[str, object]])
        for file in folder.iterdir()
    }


def _merged(name: str) -> Json:
    """Return the schema of a type with the fields of its ``allOf``, in the order in which the keys are written."""
    written = ChainMap(*_files().values())[name]
    properties: Json = {}
    for key, value in written.items():
        if key == "properties":
            properties |= object_at(value)
        elif key == "allOf":
            for part in objects_at(value):
                properties |= object_at(_merged(str(part["$ref"])), "properties")
    return {key: value for key, value in written.items() if key != "allOf"} | {"properties": properties}


def _form(schema: Schema) -> Form:
    if schema.form is not None:
        return _form(schema.form)
    if schema.ref:
        return form(schema.ref)
    match schema.type:
        case "object" if schema.additional_properties is not None:
            return Table(of=_form(schema.additional_properties))
        case "object":
            return _fields(schema)
        case "array" if schema.items is not None:
            return List(of=_form(schema.items), least=schema.min_items)
        case _:
            return _scalar(schema)


def _fields(schema: Schema) -> Fields:
    required = (name for name in schema.required if not schema.properties[name].optional)
    return Fields(
        known={name: _form(below) for name, below in schema.properties.items()}, required=tuple(required)
    )


def _scalar(schema: Schema) -> Form:
    match schema.type:
        case "string" if schema.format:
            return names.FORMATS[schema.format]
        case "string":
            return Text(choices=schema.enum, filled=schema.min_length > 0)
        case "integer":
            low, high = _RANGES[schema.format]
            return Integer(
                low=low if schema.minimum is None else schema.minimum,
                high=high if schema.maximum is None else schema.maximum,
            )
        case "boolean":
            return Flag()
        case _:
            return AnyValue()
