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
        self._rest = b""

    def take(self, data: bytes) -> list[bytes]:
        """Add data and return the lines that are complete now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines


def number(value: int) -> bytes:
    """Return the line for a sequence number of the log."""
    return b"%d\n" % value
