"""How fast an agent asks one API, and how long it waits when that doesn't answer: for each cluster by itself.

A throttled API is left alone for as long as it says, an unreachable one for longer and longer; the waits are scattered,
so that many agents don't come back together.
"""

import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio

from engine.agent.api_errors import ThrottledError, UnreachableError
from engine.agent.figures import Counts

_Result = TypeVar("_Result")

CALLS_MAX: Final = 16
"""Calls of one cluster at the same time."""

_FIRST_S: Final = 0.2
_LAST_S: Final = 30.0


class Backoff:
    """Waits that double, up to a limit, each scattered over its upper half."""

    def __init__(self, first_s: float = _FIRST_S, last_s: float = _LAST_S) -> None:
        self._first_s = first_s
        self._last_s = last_s
        self._next_s = first_s

    def again_s(self) -> float:
        """How long to wait now."""
        wait_s, self._next_s = self._next_s, min(self._next_s * 2, self._last_s)
        # Scattering needs no secret.
        return wait_s * (0.5 + random.random() / 2)  # noqa: S311

    def reset(self) -> None:
        """The next wait is the first one again."""
        self._next_s = self._first_s


class Gate:
    """Through here go all calls to one API; ``is_reachable`` tells of the last one, ``counts`` of all of them."""

    def __init__(self, on_change: Callable[[], None], counts: Counts | None = None) -> None:
        self._limiter = anyio.CapacityLimiter(CALLS_MAX)
        self._backoff = Backoff()
        self._closed_until_s = 0.0
        self._on_change = on_change
        self._counts = counts or Counts()
        self.is_reachable = True

    async def call(self, ask: Callable[[], Awaitable[_Result]]) -> _Result:
        """What is asked, once it may be; raises what it raises, and keeps everybody waiting where that says so."""
        # Whoever waits may find that it was closed for longer meanwhile.
        while (wait_s := self._closed_until_s - anyio.current_time()) > 0:  # noqa: ASYNC110
            await anyio.sleep(wait_s)
        async with self._limiter:
            try:
                found = await ask()
            except ThrottledError as error:
                self._counts.throttled += 1
                self._close(max(error.after_s, self._backoff.again_s()))
                raise
            except UnreachableError:
                self._counts.unreachable += 1
                self._close(self._backoff.again_s())
                self._set(is_reachable=False)
                raise
        self.answered()
        return found

    def answered(self) -> None:
        """Somebody got an answer."""
        self._backoff.reset()
        self._set(is_reachable=True)

    def _close(self, seconds: float) -> None:
        self._closed_until_s = max(self._closed_until_s, anyio.current_time() + seconds)

    def _set(self, *, is_reachable: bool) -> None:
        self._counts.is_reachable = is_reachable
        if is_reachable != self.is_reachable:
            self.is_reachable = is_reachable
            self._on_change()
