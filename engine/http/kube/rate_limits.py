"""Rate limits per user: requests per second, concurrent watches, and backlog per watch.

Members of ``system:masters`` are exempt from the request rate and the number of watches.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.kubeapi.errors import status_objects
from engine.kubeapi.rights.rbac import User

_USERS_MAX: Final = 10_000
"""Maximum number of rate-limit buckets kept; a dropped user starts again with a full bucket."""


class Limits(Struct, frozen=True, kw_only=True):
    """Limits per user and per watch.

    A user may send ``burst`` requests at once and ``requests_per_second`` on average, and hold ``watches``
    watches. A watch is ended when ``queue`` changes wait for its client, or one has waited for
    ``queue_seconds``.
    """

    requests_per_second: float = 400.0
    burst: int = 800
    watches: int = 256
    queue: int = 8_192
    queue_seconds: float = 15.0


class _TokenBucket(Struct):
    """A token bucket: remaining requests as of ``at_s``."""

    requests: float
    at_s: float


class Meter:
    """Count requests and watches per user; ``clock_s`` must be monotonic."""

    def __init__(self, limits: Limits, clock_s: Callable[[], float]) -> None:
        self._limits = limits
        self._clock_s = clock_s
        self._buckets: OrderedDict[str, _TokenBucket] = OrderedDict()
        self._watches: dict[str, int] = {}

    def spend(self, user: User) -> None:
        """Count a request; raises StatusError (429) with a retry delay if the bucket is empty."""
        if user.is_master:
            return
        now_s, limits = self._clock_s(), self._limits
        bucket = self._buckets.pop(user.name, None) or _TokenBucket(limits.burst, now_s)
        refilled = (now_s - bucket.at_s) * limits.requests_per_second
        bucket.requests = min(bucket.requests + refilled, limits.burst)
        bucket.at_s = now_s
        self._buckets[user.name] = bucket
        if len(self._buckets) > _USERS_MAX:
            self._buckets.popitem(last=False)
        if bucket.requests < 1:
            wait_s = math.ceil((1 - bucket.requests) / limits.requests_per_second)
            raise status_objects.too_many_requests(wait_s)
        bucket.requests -= 1

    def watch(self, user: User) -> Callable[[], None]:
        """Count a watch; the returned function ends it. Raises StatusError (429) if the user has too many."""
        count = self._watches.get(user.name, 0)
        if count >= self._limits.watches and not user.is_master:
            raise status_objects.too_many_requests(1, f"{count} watches of {user.name} are open")
        self._watches[user.name] = count + 1
        return lambda: self._leave(user.name)

    def _leave(self, name: str) -> None:
        left = self._watches[name] - 1
        if left:
            self._watches[name] = left
        else:
            del self._watches[name]
