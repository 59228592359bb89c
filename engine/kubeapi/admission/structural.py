"""Defaulting and validation of custom objects by the schema of their definition, with Kubernetes' messages.

Covers OpenAPI v3 as used by structural schemas, except patterns, formats and CEL rules: these need an engine
that bounds the cost of untrusted expressions. An alternative of ``oneOf``, ``anyOf`` or ``not`` that uses them and has
no other fault is neither valid nor invalid. ``schema_validation`` handles unknown fields.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from engine.kubeapi.errors import causes
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.schema.openapi_schemas import texts
from engine.kubeapi.values import go_texts
from events import limits
from events.json_values import Json, as_list, as_object, object_at, objects_at
from events.validation.schema import join

_TOLERANCE: Final = 1e-9
_HEAD: Final = ("apiVersion", "kind", "metadata")
_UNCHECKED: Final = frozenset({"pattern", "format", "x-kubernetes-validations"})
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


class DefaultsTooLargeError(ValueError):
    """The defaults of an object take more bytes than an object may have."""


def defaulted(value: Json, schema: Json) -> Json:
    """Return the object with the defaults of its schema; the same object if it needs none.

    Raises DefaultsTooLargeError if they take more than an object may have.
    """
    head = {name: item for name, item in value.items() if name in _HEAD}
    result = object_at(_Defaulting().value(value, schema))
    return value if result is value else {**result, **head}


def faults(value: Json, schema: Json, *, part: str = "", without: str = "") -> Iterator[Cause]:
    """Yield the errors of an object, or of one top-level field (``part``), or of all fields but one (``without``)."""
    properties = object_at(schema, "properties")
    if not part:
        for name in texts(schema.get("required")):
            if value.get(name) is None:
                yield causes.required(name)
        yield from _combined(value, schema, "")
    for name in sorted(properties):
        is_asked = name == part if part else name != without
        if name in _HEAD or not is_asked or value.get(name) is None:
            continue
        yield from _faults(value[name], object_at(properties[name]), name)


class _Defaulting:
    """Sets the defaults of one object, and limits their total size: each item of a long list may get a large one."""

    def __init__(self) -> None:
        self._left = limits.OBJECT_BYTES_MAX
        # Keyed by ``id()``: the definition keeps its parts alive, so no other object gets their ids.
        self._names: dict[int, tuple[str, ...]] = {}
        self._sizes: dict[int, int] = {}

    def value(self, value: object, schema: Json) -> object:
        """Return the value with its defaults, the same value if it needs none; raises DefaultsTooLargeError."""
        fields, items = as_object(value), as_list(value)
        if fields is not None:
            return self._object(fields, schema)
        below = as_object(schema.get("items"))
        if items is None or below is None:
            return value
        default = None if below.get("nullable") is True else below.get("default")
        result: list[object] = []
        for item in items:
            if item is None and default is not None:
                self._spend(below)
            result.append(self.value(default if item is None else item, below))
        return value if all(item is two for item, two in zip(items, result, strict=True)) else result

    def _object(self, document: Json, schema: Json) -> Json:
        result = dict(document)
        properties = object_at(schema, "properties")
        others = as_object(schema.get("additionalProperties"))
        named = self._named_defaults(properties)
        for name in named:
            self._set_default(result, name, object_at(properties, name))
        for name in document:
            if name not in properties:
                if others is not None:
                    self._set_default(result, name, others, may_be_absent=False)
            elif object_at(properties, name).get("default") is None:
                self._set_default(result, name, object_at(properties, name))
        is_same = result.keys() == document.keys() and all(
            result[name] is item for name, item in document.items()
        )
        return document if is_same else result

    def _named_defaults(self, properties: Json) -> tuple[str, ...]:
        """Return the names of the fields with defaults, cached because the items of a list share one schema."""
        names = self._names.get(id(properties))
        if names is None:
            names = tuple(
                name for name in properties if object_at(properties, name).get("default") is not None
            )
            self._names[id(properties)] = names
        return names

    def _set_default(self, document: Json, name: str, schema: Json, *, may_be_absent: bool = True) -> None:
        """Set a field to its default if it is absent, or if it is null and its schema is not nullable.

        A null in a field that is neither nullable nor has a default is removed.
        """
        is_null = name in document and document[name] is None and schema.get("nullable") is not True
        default = schema.get("default")
        if default is not None and (is_null or (may_be_absent and name not in document)):
            self._spend(schema)
            # Shared with the schema, not copied: callers must not change the object in place.
            document[name] = default
        elif is_null:
            del document[name]
        if document.get(name) is not None:
            document[name] = self.value(document[name], schema)

    def _spend(self, schema: Json) -> None:
        size = self._sizes.get(id(schema))
        if size is None:
            size = self._sizes[id(schema)] = len(msgspec.json.encode(schema["default"]))
        self._left -= size
        if self._left < 0:
            raise DefaultsTooLargeError


def _faults(value: object, schema: Json, path: str) -> Iterator[Cause]:
    if value is None and schema.get("nullable") is True:
        return
    if schema.get("x-kubernetes-int-or-string") is True:
        if not isinstance(value, int | str) or isinstance(value, bool):
            yield _mistyped(value, path, "integer,string")
        return
    type_name = schema.get("type")
    types = _TYPES.get(str(type_name))
    if types is not None and not _is_of(value, types):
        yield _mistyped(value, path, str(type_name))
        return
    choices = as_list(schema.get("enum"))
    if choices is not None and value not in choices:
        yield causes.unsupported(path, value, [str(choice) for choice in choices])
    if isinstance(value, str):
        yield from _of_text(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _of_number(value, schema, path)
    elif (items := as_list(value)) is not None:
        yield from _of_list(items, schema, path)
    elif (fields := as_object(value)) is not None:
        yield from _of_object(fields, schema, path)
    yield from _combined(value, schema, path)


def _combined(value: object, schema: Json, path: str) -> Iterator[Cause]:
    """Yield the errors from ``allOf``, ``anyOf``, ``oneOf`` and ``not``.

    If no alternative of ``anyOf`` or ``oneOf`` is valid, yield also the errors of the alternative with the fewest.
    """
    shown = f'"{path}" must'
    if all_of := objects_at(schema, "allOf"):
        wrong = [listed for below in all_of if (listed := [*_faults(value, below, path)])]
        if wrong:
            none = ". None validated" if len(wrong) == len(all_of) else ""
            yield _whole(f"{shown} validate all the schemas (allOf){none}")
            yield from (cause for listed in wrong for cause in listed)
    for name, message in (("anyOf", "at least one schema"), ("oneOf", "one and only one schema")):
        choices = objects_at(schema, name)
        wrong = [[*_faults(value, below, path)] for below in choices]
        if choices and all(wrong):
            none = ". Found none valid" if name == "oneOf" else ""
            yield _whole(f"{shown} validate {message} ({name}){none}")
            yield from min(wrong, key=len)
        valid = [below for below, listed in zip(choices, wrong, strict=True) if not listed]
        if name == "oneOf" and (count := sum(map(_is_decidable, valid))) > 1:
            yield _whole(f"{shown} validate {message} ({name}). Found {count} valid alternatives")
    excluded = as_object(schema.get("not"))
    if excluded is not None and _is_decidable(excluded) and not [*_faults(value, excluded, path)]:
        yield _whole(f"{shown} not validate the schema (not)")


def _is_decidable(schema: object) -> bool:
    """Whether a schema uses only rules that are checked here.

    A field with the name of an unchecked rule is mistaken for that rule.
    """
    fields, items = as_object(schema), as_list(schema)
    if fields is not None:
        return _UNCHECKED.isdisjoint(fields) and all(map(_is_decidable, fields.values()))
    return items is None or all(map(_is_decidable, items))


def _whole(message: str) -> Cause:
    """The error of a value that violates a combination of schemas; as in Kubernetes, it names no field."""
    return Cause(field="<nil>", reason="FieldValueInvalid", message=f'Invalid value: "": {message}')


def _too_many(path: str, count: int, most: int) -> Cause:
    items = "item" if most == 1 else "items"
    message = f"Too many: {count}: must have at most {most} {items}"
    return Cause(field=path, reason="FieldValueTooMany", message=message)


def _of_object(document: Json, schema: Json, path: str) -> Iterator[Cause]:
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if isinstance(most, int) and len(document) > most:
        yield _too_many(path, len(document), most)
    if isinstance(least, int) and len(document) < least:
        yield causes.invalid(path, document, f"{path} in body should have at least {least} properties")
    properties = object_at(schema, "properties")
    for name in texts(schema.get("required")):
        may_be_null = name in document and object_at(properties, name).get("nullable") is True
        if document.get(name) is None and not may_be_null:
            yield causes.required(join(path, name))
    others = as_object(schema.get("additionalProperties"))
    for name in sorted(document):
        below = as_object(properties.get(name)) or (others if name not in properties else None)
        if below is not None and document[name] is not None:
            yield from _faults(document[name], below, join(path, name))


def _of_list(items: list[object], schema: Json, path: str) -> Iterator[Cause]:
    most, least = schema.get("maxItems"), schema.get("minItems")
    if isinstance(most, int) and len(items) > most:
        yield _too_many(path, len(items), most)
    if isinstance(least, int) and len(items) < least:
        yield causes.invalid(path, len(items), f"{path} in body should have at least {least} items")
    below = object_at(schema, "items")
    for index, item in enumerate(items):
        yield from _faults(item, below, f"{path}[{index}]")
    yield from _repeated(items, schema, path)


def _repeated(items: list[object], schema: Json, path: str) -> Iterator[Cause]:
    """Yield an error for each repeated item of a set or keyed list."""
    sort, keys = schema.get("x-kubernetes-list-type"), texts(schema.get("x-kubernetes-list-map-keys"))
    if sort not in ("map", "set"):
        return
    seen: set[bytes] = set()
    for index, item in enumerate(items):
        fields = object_at(item)
        shown = {key: fields[key] for key in keys if key in fields} if sort == "map" else item
        identity = msgspec.json.encode(shown, order="sorted")
        if identity in seen:
            yield causes.duplicate(f"{path}[{index}]", shown)
        seen.add(identity)


def _of_text(value: str, schema: Json, path: str) -> Iterator[Cause]:
    most, least = schema.get("maxLength"), schema.get("minLength")
    if isinstance(most, int) and len(value) > most:
        yield causes.too_long(path, most)
    if isinstance(least, int) and len(value) < least:
        yield causes.invalid(path, value, f"{path} in body should be at least {least} chars long")


def _of_number(value: float, schema: Json, path: str) -> Iterator[Cause]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if isinstance(least, int | float):
        is_excluded = schema.get("exclusiveMinimum") is True
        if value < least or (is_excluded and value == least):
            comparison = "greater than" if is_excluded else "greater than or equal to"
            yield causes.invalid(path, value, f"{path} in body should be {comparison} {go_texts.of(least)}")
    if isinstance(most, int | float):
        is_excluded = schema.get("exclusiveMaximum") is True
        if value > most or (is_excluded and value == most):
            comparison = "less than" if is_excluded else "less than or equal to"
            yield causes.invalid(path, value, f"{path} in body should be {comparison} {go_texts.of(most)}")
    step = schema.get("multipleOf")
    if isinstance(step, int | float) and step and not _is_multiple(value, step):
        yield causes.invalid(path, value, f"{path} in body should be a multiple of {go_texts.of(step)}")


def _is_multiple(value: float, step: float) -> bool:
    """Whether a number is a multiple of another; fractions are rounded, as few of them are exact in binary."""
    if isinstance(value, int) and isinstance(step, int):
        return value % step == 0
    try:
        quotient = value / step
    except OverflowError:
        return False
    if not math.isfinite(quotient):
        return False
    rounded = round(quotient)
    return quotient == rounded or abs(quotient - rounded) < _TOLERANCE * abs(rounded)


def _mistyped(value: object, path: str, type_name: str) -> Cause:
    name = _name_of(value)
    # The API server reports the path of a status field without the prefix `status`.
    shown = path.removeprefix("status.")
    message = f'Invalid value: "{name}": {shown} in body must be of type {type_name}: "{name}"'
    return Cause(field=path, reason="FieldValueTypeInvalid", message=message)


def _is_of(value: object, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in types
    if isinstance(value, float) and value.is_integer() and int in types:
        return True
    return isinstance(value, types)


def _name_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    for name in ("array", "integer", "number", "object", "string"):
        if isinstance(value, _TYPES[name]):
            return name
    return "null"
