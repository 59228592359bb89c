"""What the two processes say to one another; see the package."""

from typing import Final

CORRUPTED: Final = b"corrupted "
UNWRITABLE: Final = b"unwritable "

LOG_VARIABLE: Final = "REBALLAST_VIEWS_LOG"
"""The child's environment names the log here where it is not the file in the directory: passwords stay out of the
command line."""


class Lines:
    """Cuts a stream into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def take(self, data: bytes) -> list[bytes]:
        """The lines that are whole now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines


def number(value: int) -> bytes:
    """The line that says a number of the log."""
    return b"%d\n" % value
