"""What the typed decoding of Kubernetes' own kinds refuses: values of another type than their field has.

Its errors are those of the API server's JSON decoder, of which the first in the object counts. Facts of the published
API; what values of the right type may mean is judged elsewhere.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from engine.kube.schemas import Fields, Json, ListOf, MapOf, Named, Scalar, Schema, as_list, as_object
from engine.kube.type_tables import resolved

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_LONG: Final = frozenset(
    {
        "activeDeadlineSeconds",
        "capacity",
        "deletionGracePeriodSeconds",
        "expirationSeconds",
        "fsGroup",
        "generation",
        "gid",
        "maxItems",
        "maxLength",
        "maxProperties",
        "minItems",
        "minLength",
        "minProperties",
        "nodeAllocatableUpdatePeriodSeconds",
        "observedGeneration",
        "revision",
        "runAsGroup",
        "runAsUser",
        "seconds",
        "sizeBytes",
        "startingDeadlineSeconds",
        "supplementalGroups",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
        "uid",
    }
)
"""Whole numbers of 64 bits; all others have 32."""

_QUANTITY: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?", re.ASCII)
_QUANTITY_LIKE: Final = re.compile(r"[+-]?[0-9.]+[eEinumkKMGTP]+[-+]?[0-9]*")
_QUANTITY_WORDS: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_NO_BASE64: Final = re.compile(r"[^A-Za-z0-9+/]")
_INSTANT: Final = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]?\d|2[0-3]):[0-5]\d:[0-5]\d([.,]\d+)?(Z|[+-]\d\d:\d\d)",
    re.ASCII,
)
_INSTANT_STEPS: Final = (
    (r"\d{4}", "2006"),
    (r"-", "-"),
    (r"\d\d", "01"),
    (r"-", "-"),
    (r"\d\d", "02"),
    (r"T", "T"),
    (r"\d\d?", "15"),
    (r":", ":"),
    (r"\d\d", "04"),
    (r":", ":"),
    (r"\d\d(?:[.,]\d+)?", "05"),
    (r"Z|[+-]\d\d:\d\d", "Z07:00"),
)
_LAYOUTS: Final[Mapping[str, str]] = {
    "time": "2006-01-02T15:04:05Z07:00",
    "micro": "2006-01-02T15:04:05.000000Z07:00",
}
_SCALARS: Final[Mapping[str, str]] = {
    "str": "string",
    "bytes": "[]uint8",
    "time": "string",
    "micro": "string",
    "float": "float64",
    "bool": "bool",
    "intstr": "int32",
    "quantity": "resource.Quantity",
}


class Mistyped(Struct, kw_only=True):
    """A value that its field can't hold.

    ``owner`` is the type that has the field, ``path`` leads to it, without places in lists. ``told`` says what is wrong
    where that is more than that ``word`` is wanted; ``plain_words`` say it as the decoder does that reads what
    strategic merge patches made.
    """

    value: object
    word: str
    plain_words: str
    told: str = ""
    owner: str = ""
    path: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What is wrong, as the JSON decoder says it."""
        field = ".".join((self.owner, *self.path))
        sort = sort_of(self.value, self.word)
        return self.told or f"json: cannot unmarshal {sort} into Go struct field {field} of type {self.word}"


def mistyped(value: Json, schema: Schema) -> Mistyped | None:
    """The first value of an object that its type can't hold, in the object's own order."""
    return _of_value(value, resolved(schema), "")


def base64_fault(text: str) -> str:
    """Why a text is no base64, as Kubernetes words it; empty where it is. Line breaks in it mean nothing."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        place = _bad_byte(text)
        return "" if place < 0 else f"illegal base64 data at input byte {place}"
    return ""


def _of_value(value: object, schema: Schema, name: str) -> Mistyped | None:
    """What is wrong with a value; ``name`` is that of its field."""
    if value is None:
        return None
    match schema:
        case Scalar():
            return _of_scalar(value, schema.form, name)
        case Fields():
            held = as_object(value)
            return _wrong(value, schema, "struct") if held is None else _of_fields(held, schema)
        case MapOf():
            held = as_object(value)
            return (
                _wrong(value, schema, "map") if held is None else _of_items(held.values(), schema.value, name)
            )
        case ListOf():
            items = as_list(value)
            return _wrong(value, schema, "slice") if items is None else _of_items(items, schema.item, name)
        case _:
            return None


def _of_fields(held: Json, schema: Fields) -> Mistyped | None:
    for name, item in held.items():
        known = schema.fields.get(name)
        found = None if known is None else _of_value(item, resolved(known.schema), name)
        if found is not None:
            found.owner = found.owner or schema.name.rpartition(".")[2]
            found.path = (name, *found.path)
            return found
    return None


def _of_items(items: Iterable[object], schema: Schema, name: str) -> Mistyped | None:
    below = resolved(schema)
    for item in items:
        if (found := _of_value(item, below, name)) is not None:
            return found
    return None


def _of_scalar(value: object, form: str, name: str) -> Mistyped | None:
    match form:
        case "int":
            return _of_number(value, name)
        case "intstr":
            return None if isinstance(value, str) else _of_number(value, name)
        case "quantity":
            return _told(value, _quantity_fault(value))
        case "bytes" if isinstance(value, str):
            return _told(value, base64_fault(value))
        case "time" | "micro" if isinstance(value, str):
            return _told(value, _instant_fault(value, form))
        case _:
            return None if _has_form(value, form) else _mistyped(value, _SCALARS[form])


def _has_form(value: object, form: str) -> bool:
    match form:
        case "bool":
            return isinstance(value, bool)
        case "float":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return form == "str" and isinstance(value, str)


def _of_number(value: object, name: str) -> Mistyped | None:
    word, most = ("int64", _INT64_MAX) if name in _LONG else ("int32", _INT32_MAX)
    if isinstance(value, int) and not isinstance(value, bool) and -most - 1 <= value <= most:
        return None
    return _mistyped(value, word)


def _told(value: object, words: str) -> Mistyped | None:
    return Mistyped(value=value, word="", plain_words=words, told=words) if words else None


def _mistyped(value: object, word: str) -> Mistyped:
    return Mistyped(value=value, word=word, plain_words=f"unrecognized type: {word}")


def _wrong(value: object, schema: Schema, sort: str) -> Mistyped:
    words = f"cannot restore {sort} from {_plain_sort(value)}"
    return Mistyped(value=value, word=_type_word(schema), plain_words=words)


def sort_of(value: object, word: str = "") -> str:
    """What a value is in JSON; a number that does not fit the type of this ``word`` is told."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return f"number {value}" if word in ("int32", "int64") else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _plain_sort(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case list():
            return "slice"
        case _:
            return "map"


def _type_word(schema: Schema) -> str:
    """A type as its errors name it: ``v1.PodSpec``, ``map[string]string``, ``[]v1.Container``."""
    match schema:
        case Named() | Fields():
            package, _dot, name = schema.name.rpartition(".")
            return f"{'v2' if package.endswith('v2') else 'v1'}.{name}"
        case MapOf():
            value = _type_word(schema.value)
            return "v1.ResourceList" if value == _SCALARS["quantity"] else f"map[string]{value}"
        case ListOf():
            return f"[]{_type_word(schema.item)}"
        case Scalar():
            return _SCALARS.get(schema.form, "int32")
        case _:
            return "interface {}"


def _quantity_fault(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    text = value.strip() if isinstance(value, str) else ""
    if _QUANTITY.fullmatch(text):
        return ""
    return "unable to parse quantity's suffix" if _QUANTITY_LIKE.fullmatch(text) else _QUANTITY_WORDS


def _instant_fault(text: str, form: str) -> str:
    if _INSTANT.fullmatch(text):
        return ""
    rest = text
    for shape, step in _INSTANT_STEPS:
        found = re.match(shape, rest, re.ASCII)
        if found is None:
            return f'parsing time "{text}" as "{_LAYOUTS[form]}": cannot parse "{rest}" as "{step}"'
        rest = rest[found.end() :]
    why = f'extra text: "{rest}"' if rest else "out of range"
    return f'parsing time "{text}": {why}'


def _bad_byte(text: str) -> int:
    """The place of the first byte by which a text is no base64; -1 where line breaks alone stood in the way."""
    data = text.encode()
    places = [place for place, byte in enumerate(data) if byte not in b"\r\n"]
    for count, place in enumerate(places):
        if data[place : place + 1] == b"=":
            return _bad_padding(data, places, count)
        if _NO_BASE64.match(chr(data[place])):
            return place
    return -1 if len(places) % 4 == 0 else len(data) - len(places) % 4


def _bad_padding(data: bytes, places: list[int], count: int) -> int:
    """The same where padding begins, at the place with this number."""
    first, inside = places[count], count % 4
    wanted = 4 - inside
    if inside < 2:  # noqa: PLR2004  # one byte takes two letters
        return first
    if wanted > 1:
        if count + 1 >= len(places):
            return len(data)
        if data[places[count + 1] : places[count + 1] + 1] != b"=":
            return places[count + 1] - 1
    end = count + wanted
    return -1 if end >= len(places) else places[end]
