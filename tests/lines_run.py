"""How many lines of Python a computation runs: a cost that is the same on every machine and under any load.

The work of a built-in function is not counted, only the line that calls it.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import TraceFunction


class LinesRun:
    """The number of lines that ran so far."""

    def __init__(self) -> None:
        """Start at none."""
        self.count = 0

    def tracing(self) -> "TraceFunction":
        """Return what the interpreter calls for each function; its result is called for each line, so it is brief."""

        def count(_frame: FrameType, event: str, _value: object) -> None:
            if event == "line":
                self.count += 1

        return lambda _frame, _event, _value: count


@contextmanager
def counted() -> Generator[LinesRun]:
    """Count the lines that this thread runs in functions called by the block."""
    lines, former = LinesRun(), sys.gettrace()
    sys.settrace(lines.tracing())
    try:
        yield lines
    finally:
        sys.settrace(former)
