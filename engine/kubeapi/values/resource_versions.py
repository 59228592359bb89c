"""resourceVersions; this server uses sequence numbers of the log, as decimal text."""

from typing import Final, TypeGuard

_MAX: Final = 2**64 - 1
"""Maximum in requests: API servers parse versions as numbers of 64 bits. Those of a log are far smaller."""

_DIGITS_MAX: Final = 20
"""Longer texts are refused, because their conversion to a number takes time."""

_FOREIGN_DIGITS_MAX: Final = 39
"""Maximum in versions of other APIs: clients compare numbers of 128 bits. Python converts no text of 5,000 digits."""


def is_valid(value: object) -> TypeGuard[str]:
    """Whether a value has the form of a sequence number, even one beyond the end of the log."""
    if not isinstance(value, str) or len(value) > _DIGITS_MAX:
        return False
    return value.isascii() and value.isdecimal() and int(value) <= _MAX


def number(version: str) -> int | None:
    """Return the number in a resourceVersion of any Kubernetes API; None if it is not numeric."""
    is_numeric = version.isascii() and version.isdecimal() and len(version) <= _FOREIGN_DIGITS_MAX
    return int(version) if is_numeric else None
