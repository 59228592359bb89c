"""Shards that a worker does not claim until a pause has passed: quarantined and fenced ones. Other shards continue.

A pause doubles each time, up to a limit.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from engine import diagnostics
from engine.log import port

UNREADABLE: Final = (port.LogCutError, port.LogCorruptedError)
"""Errors in the records of one shard, which do not concern other shards."""

QUARANTINE_MS: Final = 1_000
QUARANTINE_MS_MAX: Final = 30_000
FENCED_MS: Final = 5_000
FENCED_MS_MAX: Final = 80_000
"""First and longest pauses, in milliseconds, of quarantined and of fenced shards."""

_log = diagnostics.logger(__name__)


class _Failure(Struct):
    """The error of a shard, the end of its quarantine, and the length of the next one."""

    error: port.LogError
    until_ms: int
    pause_ms: int


class Quarantine:
    """The quarantined shards of one worker: their records are missing or damaged, so they are skipped for a while.

    Each is retried after its pause: an operator may have restored the records, or a snapshot that needs fewer of them.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._failures: dict[int, _Failure] = {}

    def put(self, shard: int, error: port.LogError) -> None:
        """Quarantine a shard for a while and log the reason."""
        previous = self._failures.get(shard)
        pause_ms = previous.pause_ms if previous else QUARANTINE_MS
        _log.error("shard quarantined", shard=shard, error=str(error), retry_in_s=pause_ms / 1_000)
        self._failures[shard] = _Failure(
            error, self._clock() + pause_ms, min(2 * pause_ms, QUARANTINE_MS_MAX)
        )

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
        """Forget the failures of all other shards, and let these shards be retried at once."""
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


class FencedShards:
    """Shards that are assigned to this worker, but that another worker has fenced.

    During a reassignment a shard may be assigned to two workers, which fence each other. A fenced worker does not claim
    the shard for a pause, which doubles each time, so that the other can complete its recovery even on a slow machine.
    A new assignment ends all pauses.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._until_ms: dict[int, int] = {}
        self._pauses_ms: dict[int, int] = {}

    def fence(self, shards: Iterable[int]) -> None:
        """Do not claim these shards until a pause has passed; it doubles with each call, up to ``FENCED_MS_MAX``."""
        now_ms = self._clock()
        for shard in shards:
            pause_ms = self._pauses_ms.get(shard, FENCED_MS)
            self._until_ms[shard] = now_ms + pause_ms
            self._pauses_ms[shard] = min(2 * pause_ms, FENCED_MS_MAX)

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
