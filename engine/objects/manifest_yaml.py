"""YAML documents by the core schema of YAML 1.2, built from the parser's events.

Only ``true``, ``false``, ``null`` and decimal, octal (``0o17``) and hexadecimal numbers are not strings:
``no``, ``on``, ``1:30`` and dates stay text. Tags are refused, and so are keys that are not strings, and duplicate
keys unless the caller collects them. Aliases and ``<<`` are expanded within a budget. The text is first split at
its ``---`` lines, so that one broken document does not affect the others.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Final, cast

import yaml
from msgspec import Struct
from yaml import events

from engine.objects.manifest_limits import Budget, Limits, Unreadable, fraction, integer, refuse_number
from events.limits import LISTED_FIELDS_MAX

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PARSE: Final = cast("Callable[..., Iterator[events.Event]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
_MARKER: Final = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_CONTENT: Final = re.compile(r"^(?![ \t]*(?:#|\r?$)|%|---[ \t\r]*(?:#.*)?$|\.\.\.[ \t\r]*$).", re.MULTILINE)
_DECIMAL: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_PADDED: Final = re.compile(r"[-+]?0[0-9_]+")
_BASED: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FRACTION: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LITERALS: Final[dict[str, object]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER_STARTS: Final = frozenset("-+.0123456789")
_NUMBER_CHARS_MAX: Final = 400
_MERGE: Final = "<<"
_UNBOUND: Final = Limits(
    content_bytes_max=2**62, documents_max=2**62, depth_max=256, repeated_bytes_max=2**24
)


class Part(Struct, frozen=True, kw_only=True):
    """One document of a text: its value, or the Unreadable error; ``line`` counts from 1."""

    line: int
    text: str
    value: object


def documents(text: str, budget: Budget) -> Iterator[Part]:
    """Yield the documents of a text, in order; an empty one has the value None."""
    for line, text_part in _pieces(text):
        composer = _Composer(text_part, line, budget, None)
        try:
            for value in composer.documents():
                yield Part(line=line, text=text_part, value=value)
        except Unreadable as error:
            yield Part(line=line, text=text_part, value=error)
            if not error.line:
                return  # an error without a line: the file exceeds a limit


def lines(text: str) -> dict[str, int]:
    """Return the line, from 0, of each field in the first document of a text, by path: ``spec.workloads[0].name``.

    Empty if the text is not valid YAML.
    """
    line_by_path: dict[str, int] = {}
    try:
        next(_Composer(text, 0, Budget(_UNBOUND), line_by_path).documents(), None)
    except Unreadable:
        return {}
    return line_by_path


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    boundaries = [0, *(match.start() for match in _MARKER.finditer(text)), len(text)]
    line = 1
    for start, end in itertools.pairwise(boundaries):
        text_part = text[start:end]
        if _CONTENT.search(text_part) or _after_marker(text_part):
            yield line, text_part
        line += text_part.count("\n")


def _after_marker(piece: str) -> bool:
    """Return whether the line of the marker ``---`` has content after it, as in ``--- {a: 1}``."""
    first = piece.partition("\n")[0]
    return first.startswith("---") and bool(first[3:].strip()) and not first[3:].lstrip().startswith("#")


def _is_plain(event: events.Event) -> bool:
    """Return whether a node is a scalar without quotes."""
    return isinstance(event, events.ScalarEvent) and bool(event.implicit[0])


class _Composer:
    """Builds plain values from the parser's events for one document."""

    def __init__(self, text: str, line: int, budget: Budget, positions: dict[str, int] | None) -> None:
        self._events = _PARSE(text, Loader=_LOADER)
        self._line = line
        self._budget = budget
        self._positions = positions
        self._anchors: dict[str, tuple[object, int]] = {}
        self._size = 0

    def documents(self) -> Iterator[object]:
        """Yield the documents as plain values; raises Unreadable with the line of the first fault."""
        line_read = self._line
        try:
            for event in self._events:
                line_read = self._line + event.start_mark.line
                if isinstance(event, events.DocumentStartEvent):
                    self._budget.document()
                    self._anchors.clear()
                    yield self._node(next(self._events), 1, "")
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = self._line + mark.line if mark else line_read
            raise Unreadable(
                "", f"invalid YAML: {error.problem or error.context}", line=line, syntax=True
            ) from None
        except yaml.YAMLError as error:
            raise Unreadable(
                "", f"invalid YAML: {' '.join(str(error).split())}", line=line_read, syntax=True
            ) from None

    def _node(self, event: events.Event, depth: int, path: str) -> object:
        line = self._line + event.start_mark.line
        try:
            return self._value(event, depth, path)
        except Unreadable as error:
            if error.line:
                raise
            raise Unreadable(error.field or path, error.reason, error.remedy, line=line) from None

    def _value(self, event: events.Event, depth: int, path: str) -> object:
        if isinstance(event, events.AliasEvent):
            return self._alias(str(event.anchor))
        if not isinstance(event, events.NodeEvent):
            raise Unreadable(path, "a value is missing here")
        tag = cast("str | None", getattr(event, "tag", None))
        if tag is not None:
            raise Unreadable(path, f"has the tag {tag!r}", "remove the tag")
        size_before = self._size
        self._size += 1
        if isinstance(event, events.ScalarEvent):
            text = cast("str", event.value)
            self._size += len(text)
            value = plain(text) if _is_plain(event) else text
        elif isinstance(event, events.MappingStartEvent):
            self._budget.check_depth(depth)
            value = self._mapping(depth, path)
        else:
            self._budget.check_depth(depth)
            value = self._sequence(depth, path)
        if event.anchor is not None:
            self._anchors[str(event.anchor)] = (value, self._size - size_before)
        return value

    def _alias(self, name: str) -> object:
        if name not in self._anchors:
            raise Unreadable("", f"the alias *{name} has no anchor before it, or is inside its own")
        value, size = self._anchors[name]
        self._size += size
        self._budget.add_alias(size, name)
        return value

    def _sequence(self, depth: int, path: str) -> list[object]:
        items: list[object] = []
        while not isinstance(event := next(self._events), events.SequenceEndEvent):
            item_path = f"{path}[{len(items)}]"
            self._record_line(item_path, event)
            items.append(self._node(event, depth + 1, item_path))
        return items

    def _mapping(self, depth: int, path: str) -> dict[str, object]:
        fields: dict[str, object] = {}
        merged: list[dict[str, object]] = []
        while not isinstance(event := next(self._events), events.MappingEndEvent):
            line = self._line + event.start_mark.line
            key = self._key(event, depth, path, line)
            field_path = f"{path}.{key}" if path else key
            self._record_line(field_path, event)
            value = self._node(next(self._events), depth + 1, field_path)
            if key == _MERGE and _is_plain(event):
                merged.extend(_mergeable(value, field_path, line))
            else:
                if key in fields:
                    self._repeat(field_path, line)
                fields[key] = value
        for source in merged:
            for key, value in source.items():
                fields.setdefault(key, value)
        return fields

    def _repeat(self, field_path: str, line: int) -> None:
        """Collect a repeated field for the caller (at most 100); raises Unreadable if the caller collects none."""
        repeated = self._budget.repeated
        if repeated is None:
            raise Unreadable(field_path, "occurs twice in one object", "keep one of them", line=line)
        if len(repeated) < LISTED_FIELDS_MAX and field_path not in repeated:
            repeated.append(field_path)

    def _key(self, event: events.Event, depth: int, path: str, line: int) -> str:
        remedy = "put the key in quotes"
        if not isinstance(event, events.ScalarEvent):
            if isinstance(event, events.AliasEvent) and isinstance(
                key := self._alias(str(event.anchor)), str
            ):
                return key
            raise Unreadable(path, "has a key that is not a string", remedy, line=line)
        key = self._node(event, depth + 1, path)
        if not isinstance(key, str):
            raise Unreadable(path, f"has the key {event.value!r}, which is not a string", remedy, line=line)
        return key

    def _record_line(self, path: str, event: events.Event) -> None:
        if self._positions is not None:
            self._positions.setdefault(path, self._line + event.start_mark.line)


def plain(text: str) -> object:
    """Return the value of a scalar without quotes; raises Unreadable for ambiguous, infinite or too large numbers."""
    if text in _LITERALS:
        return _LITERALS[text]
    if text[0] not in _NUMBER_STARTS:
        return text
    if _DECIMAL.fullmatch(text):
        return integer(text)
    if _PADDED.fullmatch(text):
        reason = f"{text[:20]} is octal to some readers of YAML and decimal to others"
        raise Unreadable("", reason, "write 0o and octal digits, or decimal digits, or put it in quotes")
    if _BASED.fullmatch(text):
        return integer(text, 0)
    if _NOT_FINITE.fullmatch(text):
        refuse_number(text)
    if len(text) <= _NUMBER_CHARS_MAX and _FRACTION.fullmatch(text):
        return fraction(text)
    return text


def _mergeable(value: object, path: str, line: int) -> list[dict[str, object]]:
    sources = cast("list[object]", value) if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise Unreadable(
            path, "merges a value that is not an object", "merge the anchor of an object", line=line
        )
    return cast("list[dict[str, object]]", sources)
