"""Causes of refusals: Kubernetes' sorts of field errors, and how our own faults of form become them."""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from engine.kube.schemas import Json, as_list, as_object
from engine.kube.statuses import Cause
from events.forms_schema import Fault

_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_SHOWN_CHARS_MAX: Final = 1_024


def required(field: str, detail: str = "") -> Cause:
    """A field that must be there."""
    return Cause(field=field, reason="FieldValueRequired", message=_with("Required value", detail))


def invalid(field: str, value: object, detail: str) -> Cause:
    """A field whose value can't be."""
    return Cause(field=field, reason="FieldValueInvalid", message=f"Invalid value: {_shown(value)}: {detail}")


def whole(field: str, value: object, detail: str) -> Cause:
    """The same, with the value in full, however long it is."""
    message = f"Invalid value: {msgspec.json.encode(value).decode()}: {detail}"
    return Cause(field=field, reason="FieldValueInvalid", message=message)


def not_found(field: str, value: object) -> Cause:
    """A name of something that there is not."""
    return Cause(field=field, reason="FieldValueNotFound", message=f"Not found: {_shown(value)}")


def too_long(field: str, bytes_max: int) -> Cause:
    """A value with too many bytes."""
    message = f"Too long: may not be more than {bytes_max} bytes"
    return Cause(field=field, reason="FieldValueTooLong", message=message)


def unsupported(field: str, value: object, choices: Iterable[str]) -> Cause:
    """A field whose value is none of those that there are."""
    listed = ", ".join(f'"{choice}"' for choice in choices)
    message = f"Unsupported value: {_shown(value)}: supported values: {listed}"
    return Cause(field=field, reason="FieldValueNotSupported", message=message)


def forbidden(field: str, detail: str) -> Cause:
    """A field that must not be there, or not change."""
    return Cause(field=field, reason="FieldValueForbidden", message=_with("Forbidden", detail))


def duplicate(field: str, value: object) -> Cause:
    """A value that stands twice."""
    message = f"Duplicate value: {_shown(value)}"
    return Cause(field=field, reason="FieldValueDuplicate", message=message)


def of_faults(faults: Iterable[Fault], value: Json) -> list[Cause]:
    """The causes that faults of form amount to; ``value`` is the object that they were found in."""
    return [_of_fault(fault, value) for fault in faults]


def at(value: object, field: str) -> object:
    """What stands in an object at a path such as ``spec.workloads[0].name``; None where there is nothing."""
    found = value
    for name, place in _STEP.findall(field):
        items = as_list(found)
        if place and items is not None:
            found = items[int(place)] if int(place) < len(items) else None
        else:
            found = (as_object(found) or {}).get(name)
    return found


def _of_fault(fault: Fault, value: Json) -> Cause:
    if fault.reason == "required":
        return required(fault.field, fault.remedy)
    held = at(value, fault.field)
    if held in ("", []) and fault.reason.startswith(("is empty", "has 0")):
        return required(fault.field, fault.remedy)
    detail = f"{fault.reason}; {fault.remedy}" if fault.remedy else fault.reason
    return invalid(fault.field, held, detail)


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"


def _with(words: str, detail: str) -> str:
    return f"{words}: {detail}" if detail else words
