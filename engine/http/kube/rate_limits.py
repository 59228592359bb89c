"""Rate limits per user: requests per second, concurrent watches, and changes that wait for a watch."""

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.kubeapi.errors import status_objects

_USERS_MAX: Final = 10_000
"""Maximum number of rate-limit buckets kept; a dropped user starts again with a full bucket."""


class Limits(Struct, frozen=True, kw_only=True):
    """Limits per user and per watch.

    A user may send ``burst`` requests at once and ``requests_per_second`` on average, and may have ``watches``
    open watches. A watch is ended when more than ``queue`` changes wait for its client, or changes have waited for
    more than ``queue_seconds``.
    """

    requests_per_second: float = 400.0
    burst: int = 800
    watches: int = 256
    queue: int = 8_192
    queue_seconds: float = 15.0


class _TokenBucket(Struct):
    """A token bucket: the number of remaining requests at the time ``at_s``, in seconds of a monotonic clock."""

    requests: float
    at_s: float


class Meter:
    """Count requests and watches per user; ``clock_s`` must be monotonic."""

    def __init__(self, limits: Limits, clock_s: Callable[[], float]) -> None:
        self._limits = limits
        self._clock_s = clock_s
        self._buckets: OrderedDict[str, _TokenBucket] = OrderedDict()
        self._watches: dict[str, int] = {}

    def count_request(self, user: str) -> None:
        """Count a request; raises StatusError (429) with a retry delay if the bucket is empty."""
        now_s, limits = self._clock_s(), self._limits
        bucket = self._buckets.pop(user, None) or _TokenBucket(limits.burst, now_s)
        refilled = (now_s - bucket.at_s) * limits.requests_per_second
        bucket.requests = min(bucket.requests + refilled, limits.burst)
        bucket.at_s = now_s
        self._buckets[user] = bucket
        if len(self._buckets) > _USERS_MAX:
            self._buckets.popitem(last=False)
        if bucket.requests < 1:
            wait_s = math.ceil((1 - bucket.requests) / limits.requests_per_second)
            raise status_objects.too_many_requests(wait_s)
        bucket.requests -= 1

    def watch(self, user: str) -> Callable[[], None]:
        """Count a watch until the returned function is called; raises StatusError (429) if the user has too many."""
        count = self._watches.get(user, 0)
        if count >= self._limits.watches:
            raise status_objects.too_many_requests(1, f"user {user} has reached the limit of {count} watches")
        self._watches[user] = count + 1
        return lambda: self._leave(user)

    def _leave(self, user: str) -> None:
        left = self._watches[user] - 1
        if left:
            self._watches[user] = left
        else:
            del self._watches[user]
