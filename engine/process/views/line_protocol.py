"""The line protocol between parent and child; the package's docstring describes it."""

from typing import Final

CORRUPTED: Final = b"corrupted "
UNWRITABLE: Final = b"unwritable "

LOG_VARIABLE: Final = "REBALLAST_VIEWS_LOG"
"""Environment variable with the address of a log on Kafka, for the child.

Not an argument: other users can read the password in a command line.
"""


class Lines:
    """Splits a byte stream into lines."""

    def __init__(self) -> None:
        # The parts of an incomplete line; joined only once, since the answer to a plan is one line of many megabytes.
        self._parts: list[bytes] = []

    def take(self, data: bytes) -> list[bytes]:
        """Add data and return the lines that are complete now."""
        self._parts.append(data)
        if b"\n" not in data:
            return []
        *lines, rest = b"".join(self._parts).split(b"\n")
        self._parts = [rest]
        return lines


def number(value: int) -> bytes:
    """Return the line for a sequence number of the log."""
    return b"%d\n" % value
