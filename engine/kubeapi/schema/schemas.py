"""Structural schemas of objects, as far as merging, apply, protobuf and field validation need them.

They do not validate values; each kind has its own rules for that (``admission.rules``). Apply treats a value of an
``atomic`` schema as one unit.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

ScalarForm: TypeAlias = Literal["str", "int", "float", "bool", "bytes", "quantity", "intstr", "time", "micro"]


class Scalar(Struct, frozen=True, kw_only=True, gc=False):
    """A scalar value. Times are strings (with microseconds in the form ``micro``); bytes are base64 strings.

    ``bits`` is the width of an integer; 0 if the type does not name one.
    """

    atomic: ClassVar[bool] = True
    form: ScalarForm
    bits: Literal[0, 32, 64] = 0


class Untyped(Struct, frozen=True):
    """Any value: objects are merged field by field, lists are replaced whole."""

    atomic: ClassVar[bool] = False


class ListOf(Struct, frozen=True, kw_only=True, dict=True):
    """A list; ``relation`` controls server-side apply, ``patch_key`` strategic merge patches.

    Relation ``map`` identifies items by the fields in ``keys``, ``set`` by their value; ``atomic`` lists are
    replaced whole. ``patch_key`` is empty for lists that a patch replaces, ``*`` for lists of unique scalars
    to which a patch adds, otherwise the field that identifies items.
    """

    item: "Schema"
    relation: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()
    patch_key: str = ""

    @cached_property
    def atomic(self) -> bool:
        return self.relation == "atomic"


class MapOf(Struct, frozen=True, kw_only=True):
    """An object with arbitrary keys, such as labels; apply replaces an ``atomic`` one whole."""

    value: "Schema"
    atomic: bool = False


class Named(Struct, frozen=True, kw_only=True):
    """A reference to a built-in type such as ``core.PodSpec``.

    ``granular``: at this reference, apply merges the object field by field even if its type is atomic. For such a
    reference, ``types.parsing.resolved`` returns the type with ``atomic`` set to False.
    """

    atomic: ClassVar[bool] = False
    name: str
    granular: bool = False


class Field(Struct, frozen=True, kw_only=True):
    """A field of an object.

    ``pointer``: an absent value differs from zero. ``required``: written even if zero. ``default``: the value
    that an absent field has when it is a key of list items.
    """

    schema: "Schema"
    pointer: bool = False
    required: bool = False
    default: str | None = None


class WireField(Struct, frozen=True, kw_only=True):
    """A field of a protobuf message; an empty name means that JSON inlines the fields of its type."""

    name: str
    field: Field


class Fields(Struct, frozen=True, kw_only=True):
    """An object with known fields, by JSON name; ``wire`` maps protobuf field numbers to fields.

    ``open`` objects may have further fields of any type; apply replaces ``atomic`` objects whole.
    """

    name: str
    fields: Mapping[str, Field]
    wire: Mapping[int, WireField] = {}
    atomic: bool = False
    open: bool = False


Schema: TypeAlias = Scalar | Untyped | ListOf | MapOf | Named | Fields

UNTYPED = Untyped()
