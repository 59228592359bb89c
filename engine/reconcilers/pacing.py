"""How long a worker lets its inputs gather before it takes its next turn.

A step has a price of its own, whatever it holds: its record, its commit, one look of everybody who follows the log.
Under load few large steps therefore decide more than many small ones; while there is little to do, nobody waits.
"""

from typing import Final

GATHER_S: Final = 0.05
"""Nobody waits longer than that to be decided, for the sake of others."""

_BUSY_RECORDS: Final = 200
"""Records that the steps of so long a time hold when it is worth waiting: those of some twenty new bindings."""

_FULL_RECORDS: Final = 2_000
"""A turn of so many records pays for itself."""


class Pace:
    """Watches how much the turns of one worker hold."""

    def __init__(self) -> None:
        self._began_s = 0.0
        self._records = 0
        self._is_busy = False

    def pause_s(self, records: int, now_s: float) -> float:
        """The seconds to wait after a turn that ended now with so many records."""
        self._records += records
        if now_s - self._began_s >= GATHER_S:
            self._is_busy = self._records >= _BUSY_RECORDS
            self._began_s, self._records = now_s, 0
        if not self._is_busy or records >= _FULL_RECORDS:
            return 0.0
        return GATHER_S - (now_s - self._began_s)
