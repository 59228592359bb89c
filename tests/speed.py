"""How fast this machine computes right now, for limits in processor time that hold on slower machines too."""

import time
from typing import Final

COUNTING_S: Final = 0.07
"""Processor time of ``_count`` on the machine for which limits are chosen."""


def slowness() -> float:
    """Return how many times longer this machine needs for a fixed computation; at least 1.

    A processor that is shared with other machines slows down too, so this is measured where a limit is exceeded.
    """
    began_s = time.process_time()
    _count()
    return max(1.0, (time.process_time() - began_s) / COUNTING_S)


def _count() -> int:
    return sum(number * number % 7 for number in range(500_000))
