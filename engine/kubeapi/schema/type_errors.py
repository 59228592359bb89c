"""Type errors of Kubernetes' own kinds: values whose JSON type does not fit their field.

Messages equal those of the API server's JSON decoder, which reports the first error in the object. Values of
the right type are validated by the rules modules.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from engine.kubeapi.schema.schemas import Fields, ListOf, MapOf, Named, Scalar, Schema
from engine.kubeapi.schema.types.parsing import resolved
from events.json_values import Json, as_list, as_object

QUANTITY: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?", re.ASCII)
_QUANTITY_LIKE: Final = re.compile(r"[+-]?[0-9.]+[eEinumkKMGTP]+[-+]?[0-9]*")
_QUANTITY_WORDS: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_TYPES: Final[Mapping[type, tuple[str, str]]] = {
    bool: ("bool", "bool"),
    int: ("number", "int64"),
    float: ("number", "float64"),
    str: ("string", "string"),
    list: ("array", "slice"),
}
_OBJECT: Final = ("object", "map")
"""The type of a JSON object in errors of the API server's JSON decoder, and of its decoder of merge results."""

_NO_BASE64: Final = re.compile(r"[^A-Za-z0-9+/]")
INSTANT: Final = re.compile(
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


class TypeMismatch(Struct, kw_only=True):
    """A value whose JSON type does not fit its field.

    ``owner`` is the Go type that has the field, ``path`` leads from it to the value (without list indexes).
    ``go_type`` is the expected type; ``found``, if set, is a message that replaces the generic one.
    ``expected`` is the message that the decoder of strategic merge results uses instead.
    """

    value: object
    go_type: str
    expected: str
    found: str = ""
    owner: str = ""
    path: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """The message of the API server's JSON decoder."""
        field = ".".join((self.owner, *self.path))
        json_type = json_type_of(self.value, self.go_type)
        return (
            self.found
            or f"json: cannot unmarshal {json_type} into Go struct field {field} of type {self.go_type}"
        )


def mistyped(value: Json, schema: Schema) -> TypeMismatch | None:
    """Return the first type error of an object in document order, or None."""
    return _of_value(value, resolved(schema))


def base64_fault(text: str) -> str:
    """Return the error of invalid base64 in Kubernetes' wording, or an empty string; line breaks are ignored."""
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        offset = _bad_byte(text)
        return "" if offset < 0 else f"illegal base64 data at input byte {offset}"
    return ""


def _of_value(value: object, schema: Schema) -> TypeMismatch | None:
    if value is None:
        return None
    match schema:
        case Scalar():
            return _of_scalar(value, schema)
        case Fields():
            fields = as_object(value)
            return _wrong(value, schema, "struct") if fields is None else _of_fields(fields, schema)
        case MapOf():
            fields = as_object(value)
            return (
                _wrong(value, schema, "map") if fields is None else _of_items(fields.values(), schema.value)
            )
        case ListOf():
            items = as_list(value)
            return _wrong(value, schema, "slice") if items is None else _of_items(items, schema.item)
        case _:
            return None


def _of_fields(document: Json, schema: Fields) -> TypeMismatch | None:
    # In document order, not schema order: the API server reports the first error that its decoder meets.
    for name, item in document.items():
        known = schema.fields.get(name)
        result = None if known is None else _of_value(item, resolved(known.schema))
        if result is not None:
            result.owner = result.owner or schema.name.rpartition(".")[2]
            result.path = (name, *result.path)
            return result
    return None


def _of_items(items: Iterable[object], schema: Schema) -> TypeMismatch | None:
    below = resolved(schema)
    for item in items:
        if (result := _of_value(item, below)) is not None:
            return result
    return None


def _of_scalar(value: object, schema: Scalar) -> TypeMismatch | None:
    match form := schema.form:
        case "int":
            return _of_number(value, schema.bits or 64)
        case "intstr":
            return None if isinstance(value, str) else _of_number(value, 32)
        case "quantity":
            return _mismatch(value, _quantity_fault(value))
        case "bytes" if isinstance(value, str):
            return _mismatch(value, base64_fault(value))
        case "time" | "micro" if isinstance(value, str):
            return _mismatch(value, _instant_fault(value, form))
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


def _of_number(value: object, bits: int) -> TypeMismatch | None:
    limit = 1 << bits - 1
    if isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit:
        return None
    return _mistyped(value, f"int{bits}")


def _mismatch(value: object, words: str) -> TypeMismatch | None:
    return TypeMismatch(value=value, go_type="", expected=words, found=words) if words else None


def _mistyped(value: object, word: str) -> TypeMismatch:
    return TypeMismatch(value=value, go_type=word, expected=f"unrecognized type: {word}")


def _wrong(value: object, schema: Schema, sort: str) -> TypeMismatch:
    text = f"cannot restore {sort} from {_TYPES.get(type(value), _OBJECT)[1]}"
    return TypeMismatch(value=value, go_type=_go_type(schema), expected=text)


def json_type_of(value: object, word: str = "") -> str:
    """Return a value's JSON type as errors name it.

    If the expected type ``word`` is an integer type, the name of a number includes its value, as ``number 5``.
    """
    name, _ = _TYPES.get(type(value), _OBJECT)
    return f"{name} {value}" if name == "number" and word in ("int32", "int64") else name


def _go_type(schema: Schema) -> str:
    """Return a type as error messages name it: ``v1.PodSpec``, ``map[string]string``, ``[]v1.Container``."""
    match schema:
        case Named() | Fields():
            package, _dot, name = schema.name.rpartition(".")
            return f"{'v2' if package.endswith('v2') else 'v1'}.{name}"
        case MapOf():
            value = _go_type(schema.value)
            return "v1.ResourceList" if value == _SCALARS["quantity"] else f"map[string]{value}"
        case ListOf():
            return f"[]{_go_type(schema.item)}"
        case Scalar():
            return _SCALARS.get(schema.form, f"int{schema.bits or 64}")
        case _:
            return "interface {}"


def _quantity_fault(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    text = value.strip() if isinstance(value, str) else ""
    if QUANTITY.fullmatch(text):
        return ""
    return "unable to parse quantity's suffix" if _QUANTITY_LIKE.fullmatch(text) else _QUANTITY_WORDS


def _instant_fault(text: str, form: str) -> str:
    if INSTANT.fullmatch(text):
        return ""
    rest = text
    for shape, step in _INSTANT_STEPS:
        match = re.match(shape, rest, re.ASCII)
        if match is None:
            return f'parsing time "{text}" as "{_LAYOUTS[form]}": cannot parse "{rest}" as "{step}"'
        rest = rest[match.end() :]
    why = f'extra text: "{rest}"' if rest else "out of range"
    return f'parsing time "{text}": {why}'


def _bad_byte(text: str) -> int:
    """Return the offset of the first byte that is invalid in base64, as Go reports it; -1 if there is none."""
    data = text.encode()
    indexes = [index for index, byte in enumerate(data) if byte not in b"\r\n"]
    for count, index in enumerate(indexes):
        if data[index : index + 1] == b"=":
            return _bad_padding(data, indexes, count)
        if _NO_BASE64.match(chr(data[index])):
            return index
    return -1 if len(indexes) % 4 == 0 else len(data) - len(indexes) % 4


def _bad_padding(data: bytes, indexes: list[int], count: int) -> int:
    """Return the offset of the error in padding that begins at ``data[indexes[count]]``.

    ``indexes`` are the offsets of all bytes that are not line breaks.
    """
    first, inside = indexes[count], count % 4
    padding = 4 - inside
    if inside < 2:  # noqa: PLR2004  # a byte takes at least two base64 digits
        return first
    if padding > 1:
        if count + 1 >= len(indexes):
            return len(data)
        if data[indexes[count + 1] : indexes[count + 1] + 1] != b"=":
            return indexes[count + 1] - 1
    end = count + padding
    return -1 if end >= len(indexes) else indexes[end]
