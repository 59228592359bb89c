"""Built-in types: Kubernetes' own, parsed from ``kubernetes.txt`` (generated), and the control plane's.

A line is one type (``package core`` before it sets the package); continuation lines begin with blanks:
``ContainerPort = name:1:str, containerPort:3:int!, protocol:4:str=TCP``

A field is ``name:number:type``, where number is the protobuf field number (absent for kinds without
protobuf). The name ``_`` inlines the fields of the type. A type is a scalar (an integer is ``int32``,
``int64``, or ``int`` if its width is not known), ``any``, a type of the same package or ``package.Type``;
``{T}`` is a map; ``[T]`` is an atomic list, ``[T/key+key]`` a list of relation map with these keys, ``[T/*]``
a set; ``~key`` or ``~*`` before the closing bracket is its strategic merge key. Suffixes: ``%`` atomic, ``^``
merged by apply although the type is atomic, ``?`` pointer (absent differs from zero), ``!`` always written,
``=x`` default for a list key. Lines that begin with ``#`` are comments.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Final, cast, get_args

from msgspec import structs

from engine.kubeapi.schema.openapi_schemas import from_openapi
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
    WireField,
)
from events.json_values import Json
from events.validation import kind_schemas

_KUBERNETES: Final = (
    resources.files("engine.kubeapi.schema.types").joinpath("kubernetes.txt").read_text(encoding="utf-8")
)
_INLINED: Final = "_"
_SCALARS: Final = frozenset(cast("tuple[str, ...]", get_args(ScalarForm)))
_FIELD: Final = re.compile(
    r"(?P<name>\w+):(?:(?P<number>\d+):)?(?P<type>[^%^?!=]+)(?P<merging>[%^]?)(?P<presence>[?!]?)(?:=(?P<default>.+))?"
)
_LIST: Final = re.compile(r"\[(?P<item>[^/~\]]+)(?:/(?P<keys>[\w+*]+))?(?:~(?P<patch>[\w*]+))?\]")


class TableError(ValueError):
    """A table line that does not parse, or a type name that no table defines."""


def named(name: str) -> Fields:
    """Return a type such as ``core.PodSpec``; raises TableError if no table defines it."""
    try:
        return _types()[name]
    except KeyError:
        raise TableError(f"no table has the type {name}") from None


def resolved(schema: Schema) -> Schema:
    """Return the schema, with a ``Named`` reference replaced by the type that it names."""
    return _named(schema.name, schema.granular) if isinstance(schema, Named) else schema


@cache
def _named(name: str, granular: bool) -> Fields:  # noqa: FBT001  # a key of the cache
    named_type = named(name)
    return structs.replace(named_type, atomic=False) if granular else named_type


def blank(schema: Schema) -> Json:
    """Return the object of a type before the first write.

    Structures that Go embeds by value (``metadata``, ``spec``) always exist in built-in types, so the first writer
    does not become their owner. The result is cached and shared: callers must not change it.
    """
    return _blank_of(schema.name) if isinstance(schema, Named) else _blank(resolved(schema))


@cache
def _blank_of(name: str) -> Json:
    return _blank(named(name))


def _blank(fields: Schema) -> Json:
    if not isinstance(fields, Fields) or not fields.wire:
        return {}
    result: Json = {}
    for name, field in fields.fields.items():
        inner = resolved(field.schema)
        if isinstance(inner, Fields) and inner.wire and not field.pointer:
            result[name] = _blank(inner)
        elif field.required and isinstance(inner, ListOf | MapOf):
            result[name] = None
    return result


def schema_below(schema: Schema, name: str) -> Schema:
    """Return the schema of a field of an object; untyped if the schema does not have it."""
    match schema:
        case Fields():
            known = schema.fields.get(name)
            return UNTYPED if known is None else resolved(known.schema)
        case MapOf():
            return resolved(schema.value)
        case _:
            return UNTYPED


@cache
def _types() -> Mapping[str, Fields]:
    rough = {fields.name: fields for fields in _parse()}
    result = {name: structs.replace(fields, fields=_flat(fields, rough)) for name, fields in rough.items()}
    for name, written in kind_schemas.types().items():
        result[name] = cast("Fields", from_openapi(written, name, own=True))
    return result


def _flat(fields: Fields, types: Mapping[str, Fields]) -> Mapping[str, Field]:
    """Return the fields by JSON name: an inlined type contributes its own fields."""
    result: dict[str, Field] = {}
    for name, field in fields.fields.items():
        if name.startswith(_INLINED) and isinstance(field.schema, Named):
            result.update(_flat(types[field.schema.name], types))
        else:
            result[name] = field
    return result


def _parse() -> Iterator[Fields]:
    """Yield Kubernetes' types. Inlined fields get names that begin with ``_`` until ``_flat`` replaces them."""
    package = ""
    for line in _KUBERNETES.replace("\n  ", " ").strip().splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("package "):
            package = line.removeprefix("package ")
            continue
        head, _equals, body = line.partition(" =")
        fields: dict[str, Field] = {}
        wire: dict[int, WireField] = {}
        for text in filter(None, body.strip().split(", ")):
            name, number, field = _field(text, package)
            fields[name if name != _INLINED else f"{_INLINED}{number}"] = field
            if number:
                wire[number] = WireField(name="" if name == _INLINED else name, field=field)
        name = f"{package}.{head.removesuffix('%')}"
        yield Fields(name=name, fields=fields, wire=wire, atomic=head.endswith("%"))


def _field(text: str, package: str) -> tuple[str, int, Field]:
    match = _FIELD.fullmatch(text)
    if match is None:
        raise TableError(f"{text!r} is not a field")
    field = Field(
        schema=_schema(match["type"], package, merging=match["merging"]),
        pointer=match["presence"] == "?",
        required=match["presence"] == "!",
        default=match["default"],
    )
    return match["name"], int(match["number"] or 0), field


def _schema(text: str, package: str, *, merging: str = "") -> Schema:
    if match := _LIST.fullmatch(text):
        keys = match["keys"] or ""
        return ListOf(
            item=_schema(match["item"], package),
            relation="atomic" if not keys else "set" if keys == "*" else "map",
            keys=() if keys in {"", "*"} else tuple(keys.split("+")),
            patch_key=match["patch"] or "",
        )
    if text.startswith("{"):
        return MapOf(value=_schema(text.strip("{}"), package), atomic=merging == "%")
    if text in _SCALARS:
        return Scalar(form=cast("ScalarForm", text))
    if text in {"int32", "int64"}:
        return Scalar(form="int", bits=32 if text == "int32" else 64)
    if text == "any":
        return UNTYPED
    return Named(name=text if "." in text else f"{package}.{text}", granular=merging == "^")
