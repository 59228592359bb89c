"""Reader of concatenated JSON documents, strict about duplicate keys, numbers, depth and surrogates."""

import json
import math
import re
from collections.abc import Iterator
from typing import Final, NoReturn, cast

from engine.objects.manifest_limits import Budget, Unreadable
from engine.objects.manifest_yaml import Part

_INTEGER_MIN: Final = -(2**63)
_INTEGER_MAX: Final = 2**63 - 1
_INTEGER_CHARS_MAX: Final = 20
_INK: Final = re.compile(r"\S|\Z")


def documents(text: str, budget: Budget) -> Iterator[Part]:
    """Yield the documents of a text; stops after the first one that cannot be read."""
    place, line = 0, 1
    while True:
        ink = _INK.search(text, place)
        start = ink.start() if ink else len(text)
        line += text.count("\n", place, start)
        if start == len(text):
            return
        try:
            budget.document()
            value, place = _DECODER.raw_decode(text, start)
            _survey(value, budget)
        except json.JSONDecodeError as error:
            reason = f"no JSON: {error.msg} (column {error.colno})"
            broken = Unreadable("", reason, line=error.lineno, syntax=True)
            yield Part(line=line, text=text, value=broken)
            return
        except RecursionError:
            deep = Unreadable("", f"nested deeper than {budget.limits.depth_max} levels", "flatten it")
            yield Part(line=line, text=text, value=deep)
            return
        except Unreadable as error:
            yield Part(line=line, text=text, value=error)
            return
        yield Part(line=line, text=text, value=value)
        line += text.count("\n", start, place)


def integer(text: str) -> int:
    """Return an integer of at most 64 bits; raises Unreadable for larger ones."""
    value = int(text) if len(text) <= _INTEGER_CHARS_MAX else _INTEGER_MAX + 1
    if not _INTEGER_MIN <= value <= _INTEGER_MAX:
        raise Unreadable("", f"the number {text[:_INTEGER_CHARS_MAX]} has over 64 bits", "put it in quotes")
    return value


def fraction(text: str) -> float:
    """Return a finite number; raises Unreadable for others."""
    value = float(text)
    if not math.isfinite(value):
        _not_finite(text)
    return value


def _not_finite(text: str) -> NoReturn:
    raise Unreadable(
        "", f"{text[:_INTEGER_CHARS_MAX]} is no finite number", "put it in quotes, if it is text"
    )


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _value in pairs:
            if key in seen:
                raise Unreadable(key, "stands twice in one object", "keep one of them")
            seen.add(key)
    return found


def _survey(root: object, budget: Budget) -> None:
    """Refuse values nested too deeply, and lone surrogates, which UTF-8 cannot encode."""
    waiting: list[tuple[object, int]] = [(root, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, str):
            _whole(value)
        elif isinstance(value, dict):
            budget.deepen(depth)
            for key, held in cast("dict[str, object]", value).items():
                _whole(key)
                waiting.append((held, depth + 1))
        elif isinstance(value, list):
            budget.deepen(depth)
            waiting.extend((held, depth + 1) for held in cast("list[object]", value))


def _whole(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unreadable(
            "", "half of a surrogate pair stands alone in a text", "write the whole character"
        ) from None


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=integer, parse_float=fraction, parse_constant=_not_finite
)
