"""Reader of concatenated JSON documents, strict about duplicate keys, numbers, depth and surrogates."""

import json
import re
from collections.abc import Iterator
from typing import Final, cast

from engine.objects.manifest_limits import Budget, Unreadable, fraction, integer, refuse_number
from engine.objects.manifest_yaml import Part

_FIRST_CHAR: Final = re.compile(r"\S|\Z")


def documents(text: str, budget: Budget) -> Iterator[Part]:
    """Yield the documents of a text; stops after the first one that cannot be read."""
    position, line = 0, 1
    while True:
        first_char = _FIRST_CHAR.search(text, position)
        start = first_char.start() if first_char else len(text)
        line += text.count("\n", position, start)
        if start == len(text):
            return
        try:
            budget.document()
            value, position = _DECODER.raw_decode(text, start)
            _check_depth_and_text(value, budget)
        except json.JSONDecodeError as error:
            reason = f"invalid JSON: {error.msg} (column {error.colno})"
            failure = Unreadable("", reason, line=error.lineno, syntax=True)
            yield Part(line=line, text=text, value=failure)
            return
        except RecursionError:
            deep = Unreadable("", f"nested deeper than {budget.limits.depth_max} levels", "flatten it")
            yield Part(line=line, text=text, value=deep)
            return
        except Unreadable as error:
            yield Part(line=line, text=text, value=error)
            return
        yield Part(line=line, text=text, value=value)
        line += text.count("\n", start, position)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        for key, _value in pairs:
            if key in seen:
                raise Unreadable(key, "occurs twice in one object", "keep one of them")
            seen.add(key)
    return fields


def _check_depth_and_text(root: object, budget: Budget) -> None:
    """Refuse values nested too deeply, and lone surrogates, which UTF-8 cannot encode."""
    pending: list[tuple[object, int]] = [(root, 1)]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, str):
            _check_surrogates(value)
        elif isinstance(value, dict):
            budget.check_depth(depth)
            for key, child in cast("dict[str, object]", value).items():
                _check_surrogates(key)
                pending.append((child, depth + 1))
        elif isinstance(value, list):
            budget.check_depth(depth)
            pending.extend((child, depth + 1) for child in cast("list[object]", value))


def _check_surrogates(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unreadable(
            "", "a string contains an unpaired surrogate", "write the complete character"
        ) from None


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=integer, parse_float=fraction, parse_constant=refuse_number
)
