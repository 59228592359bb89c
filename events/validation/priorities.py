"""Validation of PriorityClass events beyond the types of their fields."""

from typing import Final

from events import limits, objects, policies, shapes
from events.validation import names

VALUE_MIN: Final = -(2**31)
VALUE_MAX: Final = 2**31 - 1
"""Priorities are 32-bit signed integers, as in Kubernetes."""


def check(data: shapes.Event) -> None:
    """Raise ``objects.Refusal`` for the first fault of a PriorityClass event; other types of events pass."""
    match data:
        case policies.PriorityClassDeclared(name=name, value=value):
            _check_name(name)
            if not VALUE_MIN <= value <= VALUE_MAX:
                raise objects.Refusal("value", f"{value} is no whole number of 32 bits")
        case policies.PriorityClassGone(name=name):
            _check_name(name)
        case _:
            return


def _check_name(name: str) -> None:
    if not names.is_object_name(name):
        raise objects.Refusal("name", f"{name[: limits.SHOWN_CHARS_MAX]!r} is no name of a PriorityClass")
