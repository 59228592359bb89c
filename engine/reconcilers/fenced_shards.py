"""Fenced shards: assigned to this worker, but taken by another one, which was assigned them too.

During a reassignment two workers may both believe that a shard is theirs and fence each other. Each leaves
the shard to the other for a pause, which doubles each time, so that a recovery fits into it even on a slow
machine. A new assignment ends all pauses.
"""

from collections.abc import Callable, Iterable
from typing import Final

PAUSE_MS: Final = 5_000
PAUSE_MS_MAX: Final = 80_000


class FencedShards:
    """The shards that one worker leaves to others for now."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._until_ms: dict[int, int] = {}
        self._pauses_ms: dict[int, int] = {}

    def fence(self, shards: Iterable[int]) -> None:
        """Leave these shards alone for a pause."""
        now_ms = self._clock()
        for shard in shards:
            pause_ms = self._pauses_ms.get(shard, PAUSE_MS)
            self._until_ms[shard] = now_ms + pause_ms
            self._pauses_ms[shard] = min(2 * pause_ms, PAUSE_MS_MAX)

    def forget(self) -> None:
        """Forget all pauses: a new assignment has arrived, so every assigned shard may be tried at once."""
        self._until_ms.clear()
        self._pauses_ms.clear()

    def is_fenced(self, shard: int) -> bool:
        """Whether the pause of a shard is still running."""
        return self._until_ms.get(shard, 0) > self._clock()

    def dues_ms(self) -> list[int]:
        """Return the times at which the fenced shards may be tried again."""
        now_ms = self._clock()
        return [until_ms for until_ms in self._until_ms.values() if until_ms > now_ms]
