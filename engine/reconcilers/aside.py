"""Shards that can't be brought back, as records that they need were thrown away or are damaged: left alone for a while.

They stop nobody else. Each is tried again after a pause, which doubles with each failure up to a limit: somebody may
have restored the records, or a snapshot that needs fewer of them.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from engine import diagnostics
from engine.log import port

UNREADABLE: Final = (port.LogCutError, port.LogCorruptedError)
"""What is wrong with the records of one shard and says nothing of the others."""

PAUSE_MS: Final = 1_000
PAUSE_MS_MAX: Final = 30_000

_log = diagnostics.logger(__name__)


class _Failure(Struct):
    """What was wrong with a shard, and until when it is left alone; the pause after that is ``pause_ms``."""

    error: port.LogError
    until_ms: int
    pause_ms: int


class Aside:
    """The shards of one worker that are left alone."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._failures: dict[int, _Failure] = {}

    def put(self, shard: int, error: port.LogError) -> None:
        """Leaves a shard alone for a while, and says why."""
        before = self._failures.get(shard)
        pause_ms = before.pause_ms if before else PAUSE_MS
        _log.error("shard set aside", shard=shard, error=str(error), again_in_s=pause_ms / 1_000)
        self._failures[shard] = _Failure(error, self._clock() + pause_ms, min(2 * pause_ms, PAUSE_MS_MAX))

    def is_resting(self, shard: int) -> bool:
        """Whether a shard is to be left alone now."""
        failure = self._failures.get(shard)
        return failure is not None and failure.until_ms > self._clock()

    def take_back(self, shards: Iterable[int]) -> None:
        """These are well again."""
        for shard in shards:
            if self._failures.pop(shard, None) is not None:
                _log.info("shard well again", shard=shard)

    def keep(self, shards: Iterable[int]) -> None:
        """Forgets all but these, which are tried at once."""
        wanted = set(shards)
        self._failures = {shard: each for shard, each in self._failures.items() if shard in wanted}
        for each in self._failures.values():
            each.until_ms = 0

    def dues_ms(self) -> list[int]:
        """When those that rest now are tried again."""
        now_ms = self._clock()
        return [each.until_ms for each in self._failures.values() if each.until_ms > now_ms]

    def errors(self) -> dict[int, port.LogError]:
        """By shard what is wrong, which names the remedy."""
        return {shard: each.error for shard, each in sorted(self._failures.items())}
