"""How the interpreter runs a process that serves: rarer garbage collections, and threads that soon get their turn."""

import gc
import sys
from typing import Final

_THRESHOLDS: Final = (50_000, 4, 2_500)
_SWITCH_S: Final = 0.000_5


def tune() -> None:
    """Sets this process up for an event loop that keeps much, beside threads that do little at a time.

    In a collection everything that is kept is looked at, and hardly any cyclic garbage is found: rarer ones save a
    tenth of the time at 20,000 bindings, and more beyond. A collection holds all threads, so what is new is looked
    at in portions of some 250,000 objects at most, and what is older hardly ever. A thread that comes back from the
    disk waits for the event loop to be tired of the interpreter's lock, each time: with the usual 5 ms, commits
    beside a busy loop take five times as long.
    """
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_S)
