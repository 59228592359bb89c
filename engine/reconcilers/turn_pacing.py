"""How long a worker lets inputs gather before its next turn.

A step has a fixed cost (its record, its commit, a wake-up of each reader), so under load few large steps
decide more than many small ones. With little load the worker does not wait.
"""

from typing import Final

GATHER_S: Final = 0.05
"""Longest pause between turns in seconds."""

_BUSY_RECORDS: Final = 200
"""Records within one ``GATHER_S`` from which on pausing pays; about twenty new bindings."""

_FULL_RECORDS: Final = 2_000
"""A turn with this many records is followed by no pause."""


class Pace:
    """Measures the load of one worker's turns."""

    def __init__(self) -> None:
        self._began_s = 0.0
        self._records = 0
        self._is_busy = False

    def pause_s(self, records: int, now_s: float) -> float:
        """Return the seconds to wait after a turn that ended at ``now_s`` with this many records."""
        self._records += records
        if now_s - self._began_s >= GATHER_S:
            self._is_busy = self._records >= _BUSY_RECORDS
            self._began_s, self._records = now_s, 0
        if not self._is_busy or records >= _FULL_RECORDS:
            return 0.0
        return GATHER_S - (now_s - self._began_s)
