"""Schemas of objects: what merges, apply, protobuf and field validation need to know of a type, no more.

Not a validator of values: what an object must mean is checked where its kind is decided about.
"""

from collections.abc import Mapping
from typing import Literal, TypeAlias, cast

from msgspec import Struct

Json: TypeAlias = dict[str, object]
"""An object as JSON has it: names to null, booleans, numbers, texts, lists, objects."""

ScalarForm: TypeAlias = Literal["str", "int", "float", "bool", "bytes", "quantity", "intstr", "time", "micro"]


class Scalar(Struct, frozen=True, kw_only=True, gc=False):
    """One value; times are texts (``micro`` with microseconds), bytes are texts in base64."""

    form: ScalarForm


class Untyped(Struct, frozen=True):
    """Anything: objects merge field by field, lists are taken whole."""


class ListOf(Struct, frozen=True, kw_only=True):
    """A list. ``relation`` is that of apply; ``patch_key`` that of strategic merge patches.

    A list of relation ``map`` has items told apart by ``keys``, one of relation ``set`` by themselves, an
    ``atomic`` one is taken whole. ``patch_key`` is empty for lists that a patch replaces, ``*`` for those whose
    items are added one by one, else the field that tells items apart.
    """

    item: "Schema"
    relation: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()
    patch_key: str = ""


class MapOf(Struct, frozen=True, kw_only=True):
    """An object whose names people choose; an ``atomic`` one is taken whole by apply."""

    value: "Schema"
    atomic: bool = False


class Named(Struct, frozen=True, kw_only=True):
    """A type of the built-in tables by its name, such as ``core.PodSpec``; ``atomic`` at this place only."""

    name: str
    atomic: bool = False


class Field(Struct, frozen=True, kw_only=True):
    """One field.

    ``pointer``: absent and zero differ; ``required``: always written, also when zero; ``default``: what an absent
    field stands for where it is a key of a list.
    """

    schema: "Schema"
    pointer: bool = False
    required: bool = False
    default: str | None = None


class WireField(Struct, frozen=True, kw_only=True):
    """One field of a protobuf message; an empty name: its own fields stand beside it in JSON."""

    name: str
    field: Field


class Fields(Struct, frozen=True, kw_only=True):
    """An object with known fields, by their names in JSON; ``wire`` has them by their numbers in protobuf.

    ``open`` ones may have more fields, of any form; apply takes an ``atomic`` one whole.
    """

    name: str
    fields: Mapping[str, Field]
    wire: Mapping[int, WireField] = {}
    atomic: bool = False
    open: bool = False


Schema: TypeAlias = Scalar | Untyped | ListOf | MapOf | Named | Fields

UNTYPED = Untyped()


def as_object(value: object) -> Json | None:
    """The value, where it is an object."""
    return cast("Json", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[object] | None:
    """The value, where it is a list."""
    return cast("list[object]", value) if isinstance(value, list) else None


def has_parts(value: object) -> bool:
    """Whether it is an object or a list."""
    return isinstance(value, dict | list)


def as_objects(value: object) -> list[Json]:
    """The items of a list as objects, empty ones in place of what is none; nothing where there is no list."""
    return [as_object(item) or {} for item in as_list(value) or []]
