"""A small schema language for objects: types, ranges and required fields, and the faults of a value.

Rules that relate several fields are separate functions. Each fault names its field by path
(``spec.workloads[0].name``), so one pass reports all faults.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from events import kube_objects
from events.json_values import as_list, as_object

_SHOWN_CHARS_MAX: Final = 60
INT32_MAX: Final = 2**31 - 1


class Fault(Struct, frozen=True, gc=False):
    """A fault of a field, with the reason and a remedy."""

    field: str
    reason: str
    remedy: str = ""


def refuse_first(faults: Iterable[Fault]) -> None:
    """Raise ``kube_objects.Refusal`` for the first fault, if there is one."""
    for fault in faults:
        remedy = f"; {fault.remedy}" if fault.remedy else ""
        raise kube_objects.Refusal(fault.field, fault.reason + remedy)


class Text(Struct, frozen=True, kw_only=True):
    """A string: one of ``choices`` if there are any, and matching ``pattern``, which ``means`` describes.

    With ``numeral`` a JSON number is accepted as its text, as in quantities. With ``filled`` it must not be
    empty.
    """

    choices: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    means: str = ""
    filled: bool = False
    numeral: bool = False


class Integer(Struct, frozen=True, kw_only=True):
    """An integer from ``low`` to ``high``, both included."""

    low: int = -INT32_MAX - 1
    high: int = INT32_MAX


class Flag(Struct, frozen=True):
    """A boolean."""


class AnyValue(Struct, frozen=True):
    """Any value; it is not checked."""


class List(Struct, frozen=True, kw_only=True):
    """A list with at least ``least`` items of one form."""

    of: "Form"
    least: int = 0


class Table(Struct, frozen=True, kw_only=True):
    """An object with arbitrary field names and values of one form."""

    of: "Form"


class Fields(Struct, frozen=True, kw_only=True):
    """An object with known fields; the ``required`` ones must be set."""

    known: Mapping[str, "Form"]
    required: tuple[str, ...] = ()


Form: TypeAlias = Text | Integer | Flag | AnyValue | List | Table | Fields


def faults(form: Form, value: object, path: str) -> Iterator[Fault]:
    """Yield all faults of a value; fields that the form does not have are ignored."""
    match form:
        case AnyValue():
            return
        case Fields():
            yield from _fields_faults(form, value, path)
        case Table():
            yield from _table_faults(form, value, path)
        case List():
            yield from _many_faults(form, value, path)
        case Text():
            yield from _text_faults(form, value, path)
        case Integer():
            yield from _whole_faults(form, value, path)
        case Flag():
            if not isinstance(value, bool):
                yield _wrong(path, value, "true or false")


def canonical(form: Form, value: object, path: str, notes: list[str]) -> object:
    """Return the value with field names in the spelling of the form and without fields that are null.

    Field names are matched without regard to case, as Go's decoder does; ``notes`` gets a line for each
    correction.
    """
    match form:
        case Fields() if (fields := as_object(value)) is not None:
            return _canonical_fields(form, fields, path, notes)
        case List() if (items := as_list(value)) is not None:
            return [canonical(form.of, item, f"{path}[{index}]", notes) for index, item in enumerate(items)]
        case Table() if (fields := as_object(value)) is not None:
            return {
                name: canonical(form.of, item, join(path, name), notes)
                for name, item in fields.items()
                if item is not None
            }
        case _:
            return value


def join(path: str, name: str) -> str:
    """Return the path of field ``name`` of the value at ``path``."""
    return f"{path}.{name}" if path else name


def shown(value: object) -> str:
    """Return the repr of a value for messages, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS_MAX else text[:_SHOWN_CHARS_MAX] + "…"


def _table_faults(form: Table, value: object, path: str) -> Iterator[Fault]:
    fields = as_object(value)
    if fields is None:
        yield _wrong(path, value, "an object")
        return
    for name, item in fields.items():
        yield from faults(form.of, item, join(path, name))


def _fields_faults(form: Fields, value: object, path: str) -> Iterator[Fault]:
    fields = as_object(value)
    if fields is None:
        yield _wrong(path, value, "an object")
        return
    for name in form.required:
        if name not in fields:
            yield Fault(join(path, name), "required")
    for name, item in fields.items():
        if name in form.known:
            yield from faults(form.known[name], item, join(path, name))


def _many_faults(form: List, value: object, path: str) -> Iterator[Fault]:
    items = as_list(value)
    if items is None:
        yield _wrong(path, value, "a list")
        return
    if len(items) < form.least:
        yield Fault(path, f"has {len(items)} items", f"give at least {form.least}")
    for index, item in enumerate(items):
        yield from faults(form.of, item, f"{path}[{index}]")


def _text_faults(form: Text, value: object, path: str) -> Iterator[Fault]:
    if form.numeral and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        yield _wrong(path, value, "text")
    elif form.choices and value not in form.choices:
        choices = ", ".join(repr(choice) for choice in form.choices if choice)
        yield Fault(path, f"is {shown(value)}", f"write one of {choices}")
    elif form.filled and not value:
        yield Fault(path, "is empty", "give a value")
    elif form.pattern and not form.pattern.fullmatch(value):
        yield Fault(path, f"{shown(value)} is not {form.means}")


def _whole_faults(form: Integer, value: object, path: str) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int):
        yield _wrong(path, value, "a whole number")
    elif not form.low <= value <= form.high:
        yield Fault(path, f"is {shown(value)}", f"write a number from {form.low} to {form.high}")


def _wrong(path: str, value: object, expected: str) -> Fault:
    return Fault(path, f"is {kind_of(value)}, not {expected}")


def kind_of(value: object) -> str:
    """Return the JSON type of a value as messages name it, with the value of a number or a string."""
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
    form: Fields, fields: dict[str, object], path: str, notes: list[str]
) -> dict[str, object]:
    spellings = {name.lower(): name for name in form.known}
    result: dict[str, object] = {}
    for name, item in fields.items():
        meant = name if name in form.known else spellings.get(name.lower(), "")
        if not meant or (meant != name and meant in fields):
            result[name] = item
            continue
        if meant != name:
            notes.append(f'field "{join(path, name)}" was read as "{meant}"')
        if item is not None:
            result[meant] = canonical(form.known[meant], item, join(path, meant), notes)
    return result
