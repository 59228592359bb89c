"""Shards that somebody else took from a worker that they are assigned to: he was told that they are his.

For a while two may both have been told so. Each leaves the other what he took for a pause, which doubles each time that
it is taken once more, so that a recovery fits into it however slow the machine, until what is assigned is told anew.
"""

from collections.abc import Callable, Iterable
from typing import Final

PAUSE_MS: Final = 5_000
PAUSE_MS_MAX: Final = 80_000


class Barred:
    """The shards that one worker leaves to others for now."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._until_ms: dict[int, int] = {}
        self._pauses_ms: dict[int, int] = {}

    def bar(self, shards: Iterable[int]) -> None:
        """Leaves these alone for a while."""
        now_ms = self._clock()
        for shard in shards:
            pause_ms = self._pauses_ms.get(shard, PAUSE_MS)
            self._until_ms[shard] = now_ms + pause_ms
            self._pauses_ms[shard] = min(2 * pause_ms, PAUSE_MS_MAX)

    def forget(self) -> None:
        """What is assigned was told anew: all of it may be tried at once."""
        self._until_ms.clear()
        self._pauses_ms.clear()

    def is_barred(self, shard: int) -> bool:
        """Whether a shard is to be left alone now."""
        return self._until_ms.get(shard, 0) > self._clock()

    def dues_ms(self) -> list[int]:
        """When those that are left alone now may be tried again."""
        now_ms = self._clock()
        return [until_ms for until_ms in self._until_ms.values() if until_ms > now_ms]
