"""The line protocol between parent and child; the package's docstring describes it."""

from typing import Final

CORRUPTED: Final = b"corrupted "
UNWRITABLE: Final = b"unwritable "

LOG_VARIABLE: Final = "REBALLAST_VIEWS_LOG"
"""Environment variable with the address of a log on Kafka, for the child.

Not an argument: other users can read the password in a command line.
"""


def number(value: int) -> bytes:
    """Return the line for a sequence number of the log."""
    return b"%d\n" % value
