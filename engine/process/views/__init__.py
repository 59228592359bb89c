"""The projections in a child process beside the process that owns the log.

Folding takes as much processor time as deciding, and one Python interpreter uses one core. ``child`` is
the child: it reads the log's file up to the announced end and folds it. ``remote`` is the parent's side: it
announces the end of the log, tracks the child's progress, and reads the tables.

They exchange lines over the child's standard streams. Parent to child: the log's newest sequence number. Child to
parent: the number up to which the tables are folded, first when the tables exist; ``corrupted REASON`` if the log
cannot be read; ``unwritable REASON`` whenever the tables cannot be written, for example because the disk is
full. The child exits when its input ends, so it never outlives its parent.
"""

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
