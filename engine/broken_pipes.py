"""Output to a pipe that nothing reads any longer, as in ``reballast up | head -1``."""

import os
from typing import TextIO


def discard(stream: TextIO) -> None:
    """Discard what is written to a stream from now on, also what the interpreter flushes at its end.

    Without this, the final flush fails too, and the process ends with code 120.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
