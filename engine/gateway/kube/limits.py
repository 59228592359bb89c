"""How much of the server one user gets: requests a second, watches at a time, and how far a watch may fall behind.

Masters are not held back: whoever runs the server benchmarks it, and repairs what others broke.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.kube import statuses
from engine.kube.rights import User

_USERS_MAX: Final = 10_000
"""Users whose spending is remembered; who was forgotten begins with a full purse."""


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds for each user, and for each watch.

    ``burst`` requests may come at once, and ``requests_per_second`` go on. A watch is cut off when ``queue``
    changes wait for its client, or when one has waited for ``queue_seconds``.
    """

    requests_per_second: float = 400.0
    burst: int = 800
    watches: int = 256
    queue: int = 8_192
    queue_seconds: float = 15.0


class _Purse(Struct):
    """What a user may still spend, as of a time."""

    requests: float
    at_s: float


class Meter:
    """Counts what users ask for; ``clock_s`` only ever grows."""

    def __init__(self, limits: Limits, clock_s: Callable[[], float]) -> None:
        self._limits = limits
        self._clock_s = clock_s
        self._purses: OrderedDict[str, _Purse] = OrderedDict()
        self._watches: dict[str, int] = {}

    def spend(self, user: User) -> None:
        """Counts a request; raises StatusError (429) for one too many, with the seconds after which to come back."""
        if user.is_master:
            return
        now_s, limits = self._clock_s(), self._limits
        purse = self._purses.pop(user.name, None) or _Purse(limits.burst, now_s)
        earned = (now_s - purse.at_s) * limits.requests_per_second
        purse.requests = min(purse.requests + earned, limits.burst)
        purse.at_s = now_s
        self._purses[user.name] = purse
        if len(self._purses) > _USERS_MAX:
            self._purses.popitem(last=False)
        if purse.requests < 1:
            wait_s = math.ceil((1 - purse.requests) / limits.requests_per_second)
            raise statuses.too_many_requests(wait_s)
        purse.requests -= 1

    def watch(self, user: User) -> Callable[[], None]:
        """Counts a watch until what is given back is called; raises StatusError (429) for one too many."""
        held = self._watches.get(user.name, 0)
        if held >= self._limits.watches and not user.is_master:
            raise statuses.too_many_requests(1, f"{held} watches of {user.name} are open")
        self._watches[user.name] = held + 1
        return lambda: self._leave(user.name)

    def _leave(self, name: str) -> None:
        left = self._watches[name] - 1
        if left:
            self._watches[name] = left
        else:
            del self._watches[name]
