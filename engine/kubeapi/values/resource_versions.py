"""The resourceVersions that this server gives: sequence numbers of the log as decimal text."""

from typing import Final, TypeGuard

DIGITS_MAX: Final = 18
"""More digits are no version of any log, and longer numbers cost time to read."""


def is_valid(value: object) -> TypeGuard[str]:
    """Whether a value is the text of a sequence number."""
    return isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= DIGITS_MAX
