"""resourceVersions: those that this server gives are sequence numbers of the log as decimal text."""

from typing import Final, TypeGuard

_DIGITS_MAX: Final = 18
"""Longer texts are versions of no log, and cost time to convert."""

_FOREIGN_DIGITS_MAX: Final = 39
"""Kubernetes compares versions of up to 128 bits; Python refuses to convert texts of thousands of digits."""


def is_valid(value: object) -> TypeGuard[str]:
    """Whether a value is the text of a sequence number."""
    return isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _DIGITS_MAX


def number(version: str) -> int | None:
    """Return the number in a version that any Kubernetes API gave; None if it is not numeric."""
    is_numeric = version.isascii() and version.isdecimal() and len(version) <= _FOREIGN_DIGITS_MAX
    return int(version) if is_numeric else None
