"""The resourceVersions that this server gives: sequence numbers of the log as decimal text."""

from typing import Final, TypeGuard

_DIGITS_MAX: Final = 18
"""Longer texts are versions of no log, and cost time to convert."""


def is_valid(value: object) -> TypeGuard[str]:
    """Whether a value is the text of a sequence number."""
    return isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _DIGITS_MAX
