"""Quarantined shards: their records are missing or damaged, so they are skipped for a while.

Other shards go on. Each quarantined shard is retried after a pause that doubles with each failure up to a
limit; an operator may have restored the records, or a snapshot that needs fewer of them.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from engine import diagnostics
from engine.log import port

UNREADABLE: Final = (port.LogCutError, port.LogCorruptedError)
"""Errors in the records of one shard that say nothing about other shards."""

PAUSE_MS: Final = 1_000
PAUSE_MS_MAX: Final = 30_000

_log = diagnostics.logger(__name__)


class _Failure(Struct):
    """The error of a shard, the end of its quarantine, and the length of the next one."""

    error: port.LogError
    until_ms: int
    pause_ms: int


class Quarantine:
    """The quarantined shards of one worker."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._failures: dict[int, _Failure] = {}

    def put(self, shard: int, error: port.LogError) -> None:
        """Quarantine a shard for a while and log the reason."""
        previous = self._failures.get(shard)
        pause_ms = previous.pause_ms if previous else PAUSE_MS
        _log.error("shard quarantined", shard=shard, error=str(error), retry_in_s=pause_ms / 1_000)
        self._failures[shard] = _Failure(error, self._clock() + pause_ms, min(2 * pause_ms, PAUSE_MS_MAX))

    def is_quarantined(self, shard: int) -> bool:
        """Whether a shard is to be skipped now."""
        failure = self._failures.get(shard)
        return failure is not None and failure.until_ms > self._clock()

    def release(self, shards: Iterable[int]) -> None:
        """End the quarantine of these shards; they were recovered."""
        for shard in shards:
            if self._failures.pop(shard, None) is not None:
                _log.info("shard recovered", shard=shard)

    def retain(self, shards: Iterable[int]) -> None:
        """Forget all shards but these, which may be retried at once."""
        retained = set(shards)
        self._failures = {shard: failure for shard, failure in self._failures.items() if shard in retained}
        for failure in self._failures.values():
            failure.until_ms = 0

    def dues_ms(self) -> list[int]:
        """Return the times at which the shards skipped now are retried."""
        now_ms = self._clock()
        return [failure.until_ms for failure in self._failures.values() if failure.until_ms > now_ms]

    def errors(self) -> dict[int, port.LogError]:
        """Return the error of each quarantined shard; its message names the remedy."""
        return {shard: failure.error for shard, failure in sorted(self._failures.items())}
