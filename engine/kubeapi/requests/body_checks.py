"""Checks of the object in a request body: its kind, its duplicate keys, and whether it is typed or plain.

apiVersion and kind must be those of the path's resource. Duplicate keys are reported, because decoders silently keep
only the last value. A *typed* object of a built-in kind has no type errors and no unknown fields. A *plain* object is
typed and also has no empty values. Both skip slower checks. kubectl creates typed objects with empty values, such as
``status: {}``.
"""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from types import GenericAlias
from typing import Annotated, Final, cast

import msgspec
from msgspec import Meta

from engine.kubeapi.errors import status_objects
from engine.kubeapi.schema import type_errors
from engine.kubeapi.schema.resources import Resource, built_in
from engine.kubeapi.schema.schemas import Field, Fields, ListOf, MapOf, Named, Scalar, Schema
from engine.kubeapi.schema.types.parsing import named, resolved
from events import limits
from events.json_values import Json, as_list, as_object
from events.kube_objects import KubeObject

_SCHEME: Final = "pkg/runtime/scheme.go:110"
"""Source position that a real API server's message contains; kept because clients may match the whole text."""

_START_MAX: Final = 30
_BODY_MAX: Final = 1_024
"""Maximum number of bytes of the body that an error message quotes."""

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)

_NEVER: Final = Annotated[str, Meta(min_length=1, max_length=0)]
"""A type without valid values: an object with a field of this type needs the slower checks."""

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


def check_kind(resource: Resource, value: KubeObject, body: bytes = b"") -> None:
    """Raise StatusError if the object has another kind or version; ``body`` is the text that it was decoded from."""
    api_version, kind = value.type_meta
    if (api_version, kind) == (resource.api_version, resource.kind):
        return
    group, _slash, version = api_version.rpartition("/")
    if not kind:
        raise unrecognized(
            resource, f"Object 'Kind' is missing in '{body[:_BODY_MAX].decode(errors='replace')}'", body
        )
    if not resource.is_kubernetes_own or (kind, group) == (resource.kind, resource.group):
        raise _of_other_version(resource, api_version, kind)
    if "/" in group:
        raise unrecognized(resource, f"unexpected GroupVersion string: {api_version}", body)
    if built_in().of_kind(api_version, kind) is None:
        why = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"'
    else:
        target = f"{resource.group.partition('.')[0] or 'core'}.{resource.kind}"
        why = f"converting ({version}.{kind}) to ({target}): unknown conversion"
    raise status_objects.undecodable(resource, why, kind, version)


def with_kind(resource: Resource, value: KubeObject) -> KubeObject:
    """Return the object with apiVersion and kind of its resource where they are missing."""
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    missing: Json = {name: text for name, text in head.items() if not value.document.get(name)}
    return value.with_fields(missing) if missing else value


def unrecognized(resource: Resource, why: str, body: bytes) -> status_objects.StatusError:
    """400 for a body without a recognizable kind; quotes its first bytes, in hexadecimal if it is not JSON."""
    start = body[:_START_MAX]
    shown = (start.decode(errors="replace") if start.startswith(b"{") else start.hex()) or "<empty>"
    if len(body) > _START_MAX:
        shown += " ..."
    return status_objects.bad_request(
        f"the object provided is unrecognized (must be of type {resource.kind}): {why} ({shown})"
    )


def _of_other_version(resource: Resource, api_version: str, kind: str) -> status_objects.StatusError:
    named, expected = api_version, resource.api_version
    if kind != resource.kind:
        named, expected = f"{api_version}, {kind}", f"{expected}, {resource.kind}"
    return status_objects.bad_request(
        f"the API version in the data ({named}) does not match the expected API version ({expected})"
    )


class _ObjectWithDuplicates(dict[str, object]):
    """A decoded object that remembers its duplicate keys."""

    repeated: tuple[str, ...] = ()


def repeated_fields(text: bytes, value: object) -> list[str]:
    """Return the paths of the first 100 duplicate fields, as in Kubernetes; ``value`` is the decoded text.

    Two fast checks recognize most texts without duplicates. First, a text without escapes has no duplicates if it has
    as many colons as the encoded value. Second, a text has none if it has as many colons outside of strings as the
    value has fields.
    """
    if b"\\" not in text and text.count(b":") == msgspec.json.encode(value).count(b":"):
        return []
    if _STRING.sub(b"", text).count(b":") == _count(value):
        return []
    try:
        result: object = json.loads(text, object_pairs_hook=_decode_object)
    except (ValueError, RecursionError):
        return []
    return list(itertools.islice(_paths(result, ""), limits.LISTED_FIELDS_MAX))


def _count(value: object) -> int:
    count = 0
    waiting = [value]
    while waiting:
        part = waiting.pop()
        fields, items = as_object(part), as_list(part)
        if fields is not None:
            count += len(fields)
            waiting.extend(fields.values())
        elif items is not None:
            waiting.extend(items)
    return count


def _decode_object(pairs: list[tuple[str, object]]) -> _ObjectWithDuplicates:
    result = _ObjectWithDuplicates(pairs)
    if len(result) < len(pairs):
        counts = Counter(name for name, _value in pairs)
        result.repeated = tuple(name for name, count in counts.items() if count > 1)
    return result


def _paths(value: object, path: str) -> Iterator[str]:
    if isinstance(value, _ObjectWithDuplicates):
        for name in value.repeated:
            yield f"{path}.{name}" if path else name
        for name, item in cast("Json", value).items():
            yield from _paths(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _paths(item, f"{path}[{index}]")


def is_typed(value: Json, schema: Schema) -> bool:
    """Whether each field of an object is known, and null or of its type.

    If the result is False, the object may still be valid: the slower checks decide, as for all custom kinds.
    """
    return isinstance(schema, Named) and _matches(value, _compiled(schema.name, is_plain=False))


def is_plain(value: Json, schema: Schema) -> bool:
    """Whether an object is typed, has no null field, and no empty value in an optional field.

    If the result is False, the object may still need no change: the slower checks decide.
    """
    return isinstance(schema, Named) and _matches(value, _compiled(schema.name, is_plain=True))


def _matches(value: Json, compiled: type[msgspec.Struct]) -> bool:
    try:
        msgspec.convert(value, compiled)
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


@cache
def _compiled(name: str, *, is_plain: bool) -> type[msgspec.Struct]:
    return _struct(named(name), {}, is_plain=is_plain)


def _struct(fields: Fields, known: dict[str, object], *, is_plain: bool) -> type[msgspec.Struct]:
    """Return a struct type that checks an object, and add it to ``known``.

    ``known`` contains, by name, the types that are already compiled for the same root type.
    """
    # A type that contains itself cannot be compiled here. Its inner occurrences become ``_NEVER``, which accepts no
    # value, so objects with such values go through the slower checks.
    known[fields.name] = _NEVER
    members = [
        (f"field_{index}", _of_field(field, known, is_plain=is_plain))
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


def _of_field(field: Field, known: dict[str, object], *, is_plain: bool) -> object:
    if is_plain:
        is_optional = not (field.pointer or field.required)
        return _type(field.schema, known, is_plain=True, filled=is_optional)
    return cast("type[object]", _type(field.schema, known, is_plain=False)) | None


def _type(schema: Schema, known: dict[str, object], *, is_plain: bool, filled: bool = False) -> object:
    """Return the Python type that checks values of a schema; with ``filled`` it does not accept empty values."""
    match schema:
        case Named():
            return known.get(schema.name) or _type(resolved(schema), known, is_plain=is_plain)
        case Fields():
            return _struct(schema, known, is_plain=is_plain)
        case ListOf():
            item = _type(schema.item, known, is_plain=is_plain)
            return _filled(GenericAlias(list, (item,)), is_needed=filled)
        case MapOf():
            value = _type(schema.value, known, is_plain=is_plain)
            return _filled(GenericAlias(dict, (str, value)), is_needed=filled)
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
