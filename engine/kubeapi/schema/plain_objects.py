"""Fast check in one walk that an object of a built-in kind has no errors and no empty values."""

from functools import cache
from types import GenericAlias
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from engine.kubeapi.schema import type_errors
from engine.kubeapi.schema.schemas import Fields, ListOf, MapOf, Named, Scalar, Schema
from engine.kubeapi.schema.types.parsing import named, resolved
from events.json_values import Json

_NEVER: Final = Annotated[str, Meta(min_length=1, max_length=0)]
"""A type that no value has: fields of this type always need the slower checks."""

_FILLED: Final = Meta(min_length=1)
_TIME: Final = Annotated[str, Meta(pattern=rf"(?a)\A(?:{type_errors.INSTANT.pattern})\Z")]
_SCALARS: Final = {
    "str": str,
    "bytes": Annotated[
        str, Meta(pattern=r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z")
    ],
    "time": _TIME,
    "micro": _TIME,
    "float": float,
    "bool": bool,
    "intstr": str | Annotated[int, Meta(ge=-(2**31), lt=2**31)],
    "quantity": Annotated[str, Meta(pattern=rf"(?a)\A(?:{type_errors.QUANTITY.pattern})\Z")] | int | float,
}


def is_plain(value: Json, schema: Schema) -> bool:
    """Whether each field of an object is known, has a value of its type, and is not empty if it is optional.

    An object for which this is False may still be valid: the slower checks decide, as for all custom kinds.
    """
    if not isinstance(schema, Named):
        return False
    try:
        msgspec.convert(value, _compiled(schema.name))
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


@cache
def _compiled(name: str) -> type[msgspec.Struct]:
    return _struct(named(name), {})


def _struct(fields: Fields, known: dict[str, object]) -> type[msgspec.Struct]:
    """Return the struct of an object; ``known`` are the types already compiled for the enclosing object."""
    # A type that contains itself cannot be compiled without a name; objects with such parts need the slower
    # checks.
    known[fields.name] = _NEVER
    members = [
        (f"field_{index}", _type(field.schema, known, filled=not (field.pointer or field.required)))
        for index, field in enumerate(fields.fields.values())
    ]
    result = msgspec.defstruct(
        fields.name.rpartition(".")[2],
        [(name, kind, None) for name, kind in members],
        rename=dict(zip((name for name, _kind in members), fields.fields, strict=True)),
        forbid_unknown_fields=not fields.open,
        gc=False,
    )
    known[fields.name] = result
    return result


def _type(schema: Schema, known: dict[str, object], *, filled: bool = False) -> object:
    """Return the type of a value; with ``filled`` empty values do not match it and need the slower checks."""
    match schema:
        case Named():
            return known.get(schema.name) or _type(resolved(schema), known)
        case Fields():
            return _struct(schema, known)
        case ListOf():
            return _filled(GenericAlias(list, (_type(schema.item, known),)), is_needed=filled)
        case MapOf():
            return _filled(GenericAlias(dict, (str, _type(schema.value, known))), is_needed=filled)
        case Scalar():
            return _scalar(schema, filled=filled)
        case _:
            return object


def _scalar(schema: Scalar, *, filled: bool) -> object:
    match schema.form:
        case "int":
            limit = 1 << (schema.bits or 64) - 1
            return Annotated[int, Meta(ge=1 if filled else -limit, le=limit - 1)]
        case "float" if filled:
            return Annotated[float, Meta(gt=0)]
        case "bool" if filled:
            return _NEVER
        case form:
            return _filled(_SCALARS[form], is_needed=filled and form in ("str", "bytes"))


def _filled(kind: object, *, is_needed: bool) -> object:
    return Annotated[kind, _FILLED] if is_needed else kind
