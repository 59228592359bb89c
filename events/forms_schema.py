"""A small language for the forms of objects: what stands where, and what is wrong with a value.

Only shapes and ranges. What two fields mean together is a rule beside the form. Every fault names its field
by path (``spec.workloads[0].name``), so that one walk tells all that is wrong.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, cast

from msgspec import Struct

_SHOWN_CHARS_MAX: Final = 60
INT32_MAX: Final = 2**31 - 1


class Fault(Struct, frozen=True, gc=False):
    """What is wrong with a field, and how to put it right."""

    field: str
    reason: str
    remedy: str = ""


class Text(Struct, frozen=True, kw_only=True):
    """Text: one of ``choices`` where there are any, matching ``pattern``, which ``means`` puts in words.

    With ``numeral`` a number may stand for its text, as in quantities.
    """

    choices: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    means: str = ""
    filled: bool = False
    numeral: bool = False


class Whole(Struct, frozen=True, kw_only=True):
    """A whole number from ``low`` to ``high``, both included."""

    low: int = -INT32_MAX - 1
    high: int = INT32_MAX


class Flag(Struct, frozen=True):
    """True or false."""


class Free(Struct, frozen=True):
    """Anything; it is not looked at."""


class Many(Struct, frozen=True, kw_only=True):
    """A list with at least ``least`` items of one form."""

    of: "Form"
    least: int = 0


class Table(Struct, frozen=True, kw_only=True):
    """An object whose names people choose, with values of one form."""

    of: "Form"


class Fields(Struct, frozen=True, kw_only=True):
    """An object whose fields are known; ``required`` ones must be there."""

    known: Mapping[str, "Form"]
    required: tuple[str, ...] = ()


Form: TypeAlias = Text | Whole | Flag | Free | Many | Table | Fields


def faults(form: Form, value: object, path: str) -> Iterator[Fault]:
    """All that is wrong with a value; fields that the form doesn't know are passed over."""
    match form:
        case Free():
            return
        case Fields():
            yield from _fields_faults(form, value, path)
        case Table():
            yield from _table_faults(form, value, path)
        case Many():
            yield from _many_faults(form, value, path)
        case Text():
            yield from _text_faults(form, value, path)
        case Whole():
            yield from _whole_faults(form, value, path)
        case Flag():
            if not isinstance(value, bool):
                yield _wrong(path, value, "true or false")


def unknown(form: Form, value: object, path: str) -> Iterator[str]:
    """The paths of all fields that the form doesn't know."""
    match form:
        case Fields():
            for name, item in (as_object(value) or {}).items():
                if name not in form.known:
                    yield join(path, name)
                else:
                    yield from unknown(form.known[name], item, join(path, name))
        case Many():
            for place, item in enumerate(as_list(value) or []):
                yield from unknown(form.of, item, f"{path}[{place}]")
        case Table():
            for name, item in (as_object(value) or {}).items():
                yield from unknown(form.of, item, join(path, name))
        case _:
            return


def canonical(form: Form, value: object, path: str, notes: list[str], *, prune: bool) -> object:
    """The value as it is meant: fields in the spelling of the form, those that are null left out.

    Field names are matched as Go's decoder does it, without regard to case; ``notes`` gets a line for each that
    was put right. With ``prune`` unknown fields are left out too.
    """
    match form:
        case Fields() if (held := as_object(value)) is not None:
            return _canonical_fields(form, held, path, notes, prune=prune)
        case Many() if (items := as_list(value)) is not None:
            return [
                canonical(form.of, item, f"{path}[{place}]", notes, prune=prune)
                for place, item in enumerate(items)
            ]
        case Table() if (held := as_object(value)) is not None:
            return {
                name: canonical(form.of, item, join(path, name), notes, prune=prune)
                for name, item in held.items()
                if item is not None
            }
        case _:
            return value


def join(path: str, name: str) -> str:
    """The path of a field of what stands at ``path``."""
    return f"{path}.{name}" if path else name


def as_object(value: object) -> dict[str, object] | None:
    """The value, where it is an object."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[object] | None:
    """The value, where it is a list."""
    return cast("list[object]", value) if isinstance(value, list) else None


def shown(value: object) -> str:
    """A value in a message: short, whatever it is."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS_MAX else text[:_SHOWN_CHARS_MAX] + "…"


def _table_faults(form: Table, value: object, path: str) -> Iterator[Fault]:
    held = as_object(value)
    if held is None:
        yield _wrong(path, value, "an object")
        return
    for name, item in held.items():
        yield from faults(form.of, item, join(path, name))


def _fields_faults(form: Fields, value: object, path: str) -> Iterator[Fault]:
    held = as_object(value)
    if held is None:
        yield _wrong(path, value, "an object")
        return
    for name in form.required:
        if name not in held:
            yield Fault(join(path, name), "required")
    for name, item in held.items():
        if name in form.known:
            yield from faults(form.known[name], item, join(path, name))


def _many_faults(form: Many, value: object, path: str) -> Iterator[Fault]:
    items = as_list(value)
    if items is None:
        yield _wrong(path, value, "a list")
        return
    if len(items) < form.least:
        yield Fault(path, f"has {len(items)} items", f"give at least {form.least}")
    for place, item in enumerate(items):
        yield from faults(form.of, item, f"{path}[{place}]")


def _text_faults(form: Text, value: object, path: str) -> Iterator[Fault]:
    if form.numeral and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        yield _wrong(path, value, "text")
    elif form.choices and value not in form.choices:
        words = ", ".join(repr(choice) for choice in form.choices if choice)
        yield Fault(path, f"is {shown(value)}", f"write one of {words}")
    elif form.filled and not value:
        yield Fault(path, "is empty", "give a value")
    elif form.pattern and not form.pattern.fullmatch(value):
        yield Fault(path, f"{shown(value)} is not {form.means}")


def _whole_faults(form: Whole, value: object, path: str) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield _wrong(path, value, "a whole number")
    elif not form.low <= value <= form.high:
        yield Fault(path, f"is {shown(value)}", f"write a number from {form.low} to {form.high}")


def _wrong(path: str, value: object, wanted: str) -> Fault:
    return Fault(path, f"is {kind_of(value)}, not {wanted}")


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return f"the number {shown(value)}"
        case float():
            return f"the fraction {shown(value)}"
        case str():
            return f"the text {shown(value)}"
        case list():
            return "a list"
        case _:
            return "an object"


def _canonical_fields(
    form: Fields, held: dict[str, object], path: str, notes: list[str], *, prune: bool
) -> dict[str, object]:
    spellings = {name.lower(): name for name in form.known}
    found: dict[str, object] = {}
    for name, item in held.items():
        meant = name if name in form.known else spellings.get(name.lower(), "")
        if not meant or (meant != name and meant in held):
            if prune:
                notes.append(f'unknown field "{join(path, name)}" was left out')
            else:
                found[name] = item
            continue
        if meant != name:
            notes.append(f'field "{join(path, name)}" was read as "{meant}"')
        if item is not None:
            found[meant] = canonical(form.known[meant], item, join(path, meant), notes, prune=prune)
    return found
