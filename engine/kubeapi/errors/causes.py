"""Field errors (``Cause``) with Kubernetes' types and messages, and the conversion of ``Fault`` values to them."""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from engine.kubeapi.errors.status_objects import Cause
from events.json_values import Json, as_list, object_at
from events.validation.schema import Fault

_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_SHOWN_CHARS_MAX: Final = 1_024


def required(field: str, detail: str = "") -> Cause:
    return Cause(field=field, reason="FieldValueRequired", message=_with("Required value", detail))


def invalid(field: str, value: object, detail: str) -> Cause:
    return Cause(field=field, reason="FieldValueInvalid", message=f"Invalid value: {_shown(value)}: {detail}")


def whole(field: str, value: object, detail: str) -> Cause:
    """Error for an invalid value, which is quoted in full; ``invalid`` truncates long values."""
    message = f"Invalid value: {msgspec.json.encode(value).decode()}: {detail}"
    return Cause(field=field, reason="FieldValueInvalid", message=message)


def not_found(field: str, value: object) -> Cause:
    """Error for a reference to an object that does not exist."""
    return Cause(field=field, reason="FieldValueNotFound", message=f"Not found: {_shown(value)}")


def too_long(field: str, bytes_max: int) -> Cause:
    message = f"Too long: may not be more than {bytes_max} bytes"
    return Cause(field=field, reason="FieldValueTooLong", message=message)


def unsupported(field: str, value: object, choices: Iterable[str]) -> Cause:
    """Error for a value that is not one of the supported choices."""
    listed = ", ".join(f'"{choice}"' for choice in choices)
    message = f"Unsupported value: {_shown(value)}: supported values: {listed}"
    return Cause(field=field, reason="FieldValueNotSupported", message=message)


def forbidden(field: str, detail: str) -> Cause:
    """Error for a field that must not be set, or must not change."""
    return Cause(field=field, reason="FieldValueForbidden", message=_with("Forbidden", detail))


def duplicate(field: str, value: object) -> Cause:
    """Error for a value that occurs more than once."""
    message = f"Duplicate value: {_shown(value)}"
    return Cause(field=field, reason="FieldValueDuplicate", message=message)


def of_faults(faults: Iterable[Fault], value: Json) -> list[Cause]:
    """Convert faults of ``events`` validation into causes; ``value`` is the object that was validated."""
    return [_of_fault(fault, value) for fault in faults]


def at(value: object, field: str) -> object:
    """Return the value at a path such as ``spec.workloads[0].name``, or None."""
    result = value
    for name, index in _STEP.findall(field):
        items = as_list(result)
        if index and items is not None:
            result = items[int(index)] if int(index) < len(items) else None
        else:
            result = object_at(result).get(name)
    return result


def _of_fault(fault: Fault, value: Json) -> Cause:
    if fault.reason == "required":
        return required(fault.field, fault.remedy)
    value_at = at(value, fault.field)
    if value_at in ("", []) and fault.reason.startswith(("is empty", "has 0")):
        return required(fault.field, fault.remedy)
    detail = f"{fault.reason}; {fault.remedy}" if fault.remedy else fault.reason
    return invalid(fault.field, value_at, detail)


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"


def _with(words: str, detail: str) -> str:
    return f"{words}: {detail}" if detail else words
