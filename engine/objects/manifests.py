"""Parser of untrusted YAML or JSON into plain objects; files with several documents and lists are split.

It knows nothing about kinds; other modules validate the fields. It never raises for bad content: each
document becomes an object, or a fault with its location, reason and remedy, and the documents around a bad
one are still read.
"""

from collections.abc import Iterator
from typing import Final, cast

from msgspec import Struct

from engine.objects import manifest_json, manifest_yaml
from engine.objects.manifest_limits import Budget, Limits, Unreadable

_JSON_STARTS: Final = ("{", "[")
_FIELD_CHARS_MAX: Final = 120


class Document(Struct, frozen=True, kw_only=True):
    """One object; ``index`` counts the documents of a file from 1, ``line`` its lines from 1.

    ``prefix`` is the path of the object in its document: empty, or ``items[3].`` in a list.
    """

    file: str
    index: int
    line: int
    value: dict[str, object]
    text: str
    prefix: str = ""


class Fault(Struct, frozen=True, kw_only=True):
    """The reason why a document or a part of it is refused; ``line`` is 0 if unknown."""

    file: str
    index: int
    line: int
    field: str
    reason: str
    remedy: str = ""
    text: str = ""


def read(
    content: bytes,
    *,
    file: str,
    limits: Limits,
    repeated: list[str] | None = None,
    splits_lists: bool = True,
) -> list[Document | Fault]:
    """Return the objects and faults of a file, in order; empty documents are left out.

    ``file`` is used only in the results. ``repeated`` collects the paths of repeated YAML fields, whose last value is
    used; if it is None, repeated fields are faults. With ``splits_lists`` a list is replaced by its items.
    """
    if len(content) > limits.content_bytes_max:
        reason = f"{len(content)} bytes; the limit is {limits.content_bytes_max} bytes"
        return [Fault(file=file, index=1, line=0, field="", reason=reason, remedy="split the file")]
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is not valid UTF-8"
        return [Fault(file=file, index=1, line=0, field="", reason=reason, remedy="save the file as UTF-8")]
    budget = Budget(limits, repeated)
    if text.lstrip().startswith(_JSON_STARTS):
        return _number(file, _json_or_yaml(text, budget), splits_lists=splits_lists)
    return _number(file, manifest_yaml.documents(text, budget), splits_lists=splits_lists)


def line_of(document: Document, field: str) -> int:
    """Return the line of a field of a document, or of its nearest parent; 0 if unknown."""
    lines = manifest_yaml.lines(document.text)
    path = document.prefix + field
    while path:
        if path in lines:
            return lines[path] + document.line
        cut = max(path.rfind("."), path.rfind("["))
        path = path[:cut] if cut > 0 else ""
    return document.line if lines else 0


def _json_or_yaml(text: str, budget: Budget) -> Iterator[manifest_yaml.Part]:
    """Read JSON; falls back to YAML in flow style if the text is not JSON."""
    parts = list(manifest_json.documents(text, budget))
    if not isinstance(parts[-1].value, Unreadable):
        return iter(parts)
    yaml_parts = list(manifest_yaml.documents(text, Budget(budget.limits, budget.repeated)))
    if parts[-1].value.syntax and all(not isinstance(part.value, Unreadable) for part in yaml_parts):
        return iter(yaml_parts)
    last_value = yaml_parts[-1].value if yaml_parts else None
    if not parts[-1].value.line and isinstance(last_value, Unreadable) and not last_value.syntax:
        parts[-1] = yaml_parts[-1]  # the same fault, but the YAML reader knows its line
    return iter(parts)


def _number(file: str, parts: Iterator[manifest_yaml.Part], *, splits_lists: bool) -> list[Document | Fault]:
    results: list[Document | Fault] = []
    index = 0
    for part in parts:
        if part.value is None:
            continue
        index += 1
        results.extend(_objects(file, index, part, part.value, "", splits_lists=splits_lists))
    return results


def _objects(
    file: str, index: int, part: manifest_yaml.Part, value: object, prefix: str, *, splits_lists: bool = True
) -> Iterator[Document | Fault]:
    if isinstance(value, Unreadable):
        yield Fault(
            file=file,
            index=index,
            line=value.line or part.line,
            field=value.field[:_FIELD_CHARS_MAX],
            reason=value.reason,
            remedy=value.remedy,
            text=part.text,
        )
    elif isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        items = fields.get("items")
        if splits_lists and str(fields.get("kind", "")).endswith("List") and isinstance(items, list):
            for position, item in enumerate(cast("list[object]", items)):
                yield from _objects(file, index, part, item, f"{prefix}items[{position}].")
        else:
            yield Document(
                file=file, index=index, line=part.line, value=fields, text=part.text, prefix=prefix
            )
    else:
        yield Fault(
            file=file,
            index=index,
            line=part.line,
            field=prefix.removesuffix("."),
            reason=f"is {_type_name(value)}, not an object",
            remedy="write apiVersion, kind, metadata and spec",
            text=part.text,
        )


def _type_name(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case _:
            return "a list"
