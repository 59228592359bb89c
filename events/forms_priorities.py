"""What an event of a PriorityClass must look like, beyond the types of its fields."""

from typing import Final

from events import forms_names as names
from events import objects, policies, shapes

VALUE_MIN: Final = -(2**31)
VALUE_MAX: Final = 2**31 - 1
"""Priorities are whole numbers of 32 bits."""

_SHOWN_CHARS_MAX: Final = 80


def check(data: shapes.Event) -> None:
    """Raises ``objects.Refusal`` with the first thing that is wrong; events of other types pass."""
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
        raise objects.Refusal("name", f"{name[:_SHOWN_CHARS_MAX]!r} is no name of a PriorityClass")
