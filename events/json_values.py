"""Read values of decoded JSON whose shape is not known.

A function ``as_…`` checks one value. ``at`` and the functions ``…_at`` follow a path of field names and return an
empty value if a step is missing or of another type. A write of one object calls them a few hundred times, so none of
them calls another.
"""

# ``isinstance`` does not narrow the type of the items; a cast would, but costs a call at run time.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import msgspec

if TYPE_CHECKING:
    from typing_extensions import deprecated

Json: TypeAlias = dict[str, object]
"""A JSON object."""

canonical_json: Final = msgspec.json.Encoder(order="deterministic").encode
"""Encodes a value as JSON; equal values give equal bytes, whatever the order of the fields of objects."""

DECODING_ERRORS: Final = (msgspec.MsgspecError, ValueError, RecursionError)
"""Errors of reading JSON or a struct from bytes: a wrong shape, invalid UTF-8 or huge numbers, or deep nesting."""

_Path = ParamSpec("_Path")
_ValueT = TypeVar("_ValueT")
_ReadT_co = TypeVar("_ReadT_co", covariant=True)


class _HasDocument(Protocol):
    @property
    def document(self) -> Json: ...


if TYPE_CHECKING:

    class _Reader(Protocol[_Path, _ReadT_co]):
        """A function that reads JSON. Type checkers refuse a struct as ``value``: it would be read as empty."""

        @overload
        def __call__(
            self, value: Json | str | None, /, *args: _Path.args, **named: _Path.kwargs
        ) -> _ReadT_co: ...
        @overload
        @deprecated("not JSON: read its document, or use its own readers")
        def __call__(
            self,
            value: _HasDocument | msgspec.Struct | Json | str | None,
            /,
            *args: _Path.args,
            **named: _Path.kwargs,
        ) -> _ReadT_co: ...
        @overload
        def __call__(self, value: object, /, *args: _Path.args, **named: _Path.kwargs) -> _ReadT_co: ...


def _json_only(read: "Callable[Concatenate[object, _Path], _ValueT]") -> "_Reader[_Path, _ValueT]":
    return read


@_json_only
def as_object(value: object) -> Json | None:
    """Return the value if it is a JSON object, otherwise None."""
    return value if isinstance(value, dict) else None


@_json_only
def as_list(value: object) -> list[object] | None:
    """Return the value if it is a list, otherwise None."""
    return value if isinstance(value, list) else None


def is_container(value: object) -> bool:
    return isinstance(value, dict | list)


def as_text(value: object) -> str:
    """Return the value if it is a text, otherwise an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """Return the value if it is an integer; 0 for any other type and for negative numbers."""
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else 0


@_json_only
def at(value: object, *path: str) -> object:
    """Return the value at a path of field names; None if there is none."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


@_json_only
def object_at(value: object, *path: str) -> Json:
    """Return the object at a path of field names; an empty one if there is none."""
    for name in path:
        if not isinstance(value, dict):
            return {}
        value = value.get(name)
    return value if isinstance(value, dict) else {}


@_json_only
def list_at(value: object, *path: str) -> list[object]:
    """Return the list at a path of field names; an empty one if there is none."""
    for name in path:
        if not isinstance(value, dict):
            return []
        value = value.get(name)
    return value if isinstance(value, list) else []


@_json_only
def objects_at(value: object, *path: str) -> list[Json]:
    """Return the items of the list at a path; items that are not objects become empty objects."""
    return [item if isinstance(item, dict) else {} for item in list_at(value, *path)]


@_json_only
def texts(value: object) -> list[str]:
    """Return the items of a list as text; empty if the value is not a list."""
    return [str(item) for item in list_at(value)]


def decoded(raw: msgspec.Raw | bytes | str) -> Json:
    """Decode a JSON object; an empty one if it cannot be decoded."""
    try:
        return msgspec.json.decode(raw, type=Json)
    except DECODING_ERRORS:
        return {}


def without_nulls(value: object) -> object:
    """Return the value without null fields, at any depth; null items of lists stay."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value
