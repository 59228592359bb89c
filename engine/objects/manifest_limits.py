"""Limits on untrusted content, and the error that all readers raise."""

import math
from typing import Final, NoReturn

from msgspec import Struct

_INTEGER_BITS_MAX: Final = 63
_SHOWN_CHARS_MAX: Final = 20


class Limits(Struct, frozen=True, kw_only=True):
    """Maximum bytes of a file, documents in it, and levels of nesting.

    ``repeated_bytes_max`` limits the bytes that YAML aliases may add to the content, over the whole file.
    """

    content_bytes_max: int
    documents_max: int
    depth_max: int
    repeated_bytes_max: int


class Unreadable(Exception):  # noqa: N818  # a control-flow exception for bad content, not a program error
    """Content that cannot be read.

    ``line`` counts from 1, 0 if unknown; ``syntax`` means that the content is neither JSON nor YAML.
    """

    def __init__(
        self, field: str, reason: str, remedy: str = "", *, line: int = 0, syntax: bool = False
    ) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
        self.remedy = remedy
        self.line = line
        self.syntax = syntax


class Budget:
    """How much of the limits one file has used.

    The paths of repeated YAML fields are added to ``repeated``, and the last value of such a field is used. If
    ``repeated`` is None, a repeated field is refused.
    """

    def __init__(self, limits: Limits, repeated: list[str] | None = None) -> None:
        self.limits = limits
        self.repeated = repeated
        self._documents = 0
        self._repeated = 0

    def document(self) -> None:
        """Count a document; raises Unreadable if there are too many."""
        self._documents += 1
        if self._documents > self.limits.documents_max:
            raise Unreadable("", f"more than {self.limits.documents_max} documents", "split the file")

    def add_alias(self, size: int, name: str) -> None:
        """Count the bytes added by an alias; raises Unreadable if aliases add too many."""
        self._repeated += size
        if self._repeated > self.limits.repeated_bytes_max:
            reason = f"aliases (here *{name}) add more than {self.limits.repeated_bytes_max} bytes"
            raise Unreadable("", reason, "write the values out")

    def check_depth(self, depth: int) -> None:
        """Check the depth of a value; raises Unreadable if it is too deep."""
        if depth > self.limits.depth_max:
            raise Unreadable("", f"nested deeper than {self.limits.depth_max} levels", "flatten it")


def integer(text: str, base: int = 10) -> int:
    """Return an integer of at most 64 bits; raises Unreadable for larger ones."""
    value = int(text, base) if len(text) < _INTEGER_BITS_MAX else 1 << _INTEGER_BITS_MAX
    if not -(1 << _INTEGER_BITS_MAX) <= value < 1 << _INTEGER_BITS_MAX:
        reason = f"the number {text[:_SHOWN_CHARS_MAX]} does not fit into 64 bits"
        raise Unreadable("", reason, "put it in quotes")
    return value


def fraction(text: str) -> float:
    """Return a number as a float; raises Unreadable if it is not finite."""
    value = float(text)
    return value if math.isfinite(value) else refuse_number(text)


def refuse_number(text: str) -> NoReturn:
    """Raise Unreadable for a number that is not finite."""
    reason = f"{text[:_SHOWN_CHARS_MAX]} is not a finite number"
    raise Unreadable("", reason, "put it in quotes if it is a string")
