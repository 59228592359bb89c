"""Detection of duplicate keys in JSON objects; decoders keep the last value, which is ambiguous."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, cast

import msgspec

from events.json_values import Json, as_list, as_object

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


class _Noting(dict[str, object]):
    """A decoded object that remembers its duplicate keys."""

    repeated: tuple[str, ...] = ()


def repeated(text: bytes, value: object) -> list[str]:
    """Return the paths of duplicate fields, in order; ``value`` is the decoded text.

    Fast paths: without duplicates the text has as many colons as the value, encoded again, if no escape can hide one;
    and as many colons outside strings as the value has fields.
    """
    if b"\\" not in text and text.count(b":") == msgspec.json.encode(value).count(b":"):
        return []
    if _STRING.sub(b"", text).count(b":") == _count(value):
        return []
    try:
        result: object = json.loads(text, object_pairs_hook=_noted)
    except (ValueError, RecursionError):
        return []
    return list(_paths(result, ""))


def message(path: str) -> str:
    """Return the text of an error or warning about a duplicate field."""
    return f'duplicate field "{path}"'


def _count(value: object) -> int:
    count = 0
    waiting = [value]
    while waiting:
        each = waiting.pop()
        fields, items = as_object(each), as_list(each)
        if fields is not None:
            count += len(fields)
            waiting.extend(fields.values())
        elif items is not None:
            waiting.extend(items)
    return count


def _noted(pairs: list[tuple[str, object]]) -> _Noting:
    result = _Noting(pairs)
    if len(result) < len(pairs):
        counts = Counter(name for name, _value in pairs)
        result.repeated = tuple(name for name, count in counts.items() if count > 1)
    return result


def _paths(value: object, path: str) -> Iterator[str]:
    if isinstance(value, _Noting):
        for name in value.repeated:
            yield f"{path}.{name}" if path else name
        for name, item in cast("Json", value).items():
            yield from _paths(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _paths(item, f"{path}[{index}]")
