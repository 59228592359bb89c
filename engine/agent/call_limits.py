"""Limits and delays of calls to one API, per cluster.

After a throttled call, all calls wait as long as the response demands, and fewer are made at the same time; after a
failed connection, all wait for exponentially growing times. Delays are randomized, so that many agents do not retry at
once.
"""

import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio

from engine.agent.agent_metrics import ClusterCounters
from engine.agent.api_errors import FailedError, ThrottledError, UnreachableError

_Result = TypeVar("_Result")

CALLS_MAX: Final = 16
"""Concurrent calls to one cluster, unless it throttles them."""

_ACCEPTED_MIN: Final = 20
"""Calls that must succeed in a row before one more is made at the same time."""

_FIRST_S: Final = 0.2
_LAST_S: Final = 30.0


class Backoff:
    """Exponential delays up to a limit, each multiplied by a random factor between 0.5 and 1."""

    def __init__(self, first_s: float = _FIRST_S, last_s: float = _LAST_S) -> None:
        self._first_s = first_s
        self._last_s = last_s
        self._next_s = first_s

    def next_delay_s(self, worked_s: float = 0.0) -> float:
        """The next delay in seconds.

        ``worked_s`` is how long the task worked before it failed. If that exceeds the longest delay, start again with
        the first one.
        """
        if worked_s > self._last_s:
            self.reset()
        wait_s, self._next_s = self._next_s, min(self._next_s * 2, self._last_s)
        # Jitter does not need a cryptographic generator.
        return wait_s * (0.5 + random.random() / 2)  # noqa: S311

    def reset(self) -> None:
        """Start again with the first delay."""
        self._next_s = self._first_s


class Gate:
    """Limits all calls to one API (``call``). ``is_reachable``: the last call got a response."""

    def __init__(self, on_change: Callable[[], None], counts: ClusterCounters | None = None) -> None:
        self._limiter = anyio.CapacityLimiter(CALLS_MAX)
        self._backoff = Backoff()
        self._accepted = 0
        self._closed_until_s = 0.0
        self._on_change = on_change
        self._counts = counts or ClusterCounters()
        self.is_reachable = True

    async def call(self, request: Callable[[], Awaitable[_Result]]) -> _Result:
        """Wait until calls are permitted, then run one.

        Raises the errors of ``request``. ThrottledError and UnreachableError also delay all later calls;
        FailedError, a subclass of UnreachableError, does not.
        """
        async with self._limiter:
            # Check again after sleeping: another call may have extended the delay.
            while (wait_s := self._closed_until_s - anyio.current_time()) > 0:  # noqa: ASYNC110
                await anyio.sleep(wait_s)
            try:
                result = await request()
            except ThrottledError as error:
                self._counts.throttled += 1
                if self._close(error.after_s):
                    self._limiter.total_tokens = max(1, self._limiter.total_tokens // 2)
                self._accepted = 0
                raise
            except FailedError:
                # The server answered, so other calls need not wait.
                raise
            except UnreachableError:
                self._counts.unreachable += 1
                self._close(0)
                self._set(is_reachable=False)
                raise
            self._accepted += 1
            if self._accepted >= _ACCEPTED_MIN and self._limiter.total_tokens < CALLS_MAX:
                self._limiter.total_tokens += 1
                self._accepted = 0
        self.answered()
        return result

    def answered(self) -> None:
        """Record a successful response; callers that do not use ``call`` report theirs here."""
        self._backoff.reset()
        self._set(is_reachable=True)

    def _close(self, at_least_s: float) -> bool:
        """Delay later calls; return whether calls were permitted before.

        If concurrent calls fail together, only the first failure increases the delay.
        """
        now_s = anyio.current_time()
        if was_open := now_s >= self._closed_until_s:
            self._closed_until_s = now_s + self._backoff.next_delay_s()
        self._closed_until_s = max(self._closed_until_s, now_s + at_least_s)
        return was_open

    def _set(self, *, is_reachable: bool) -> None:
        self._counts.is_reachable = is_reachable
        if is_reachable != self.is_reachable:
            self.is_reachable = is_reachable
            self._on_change()
