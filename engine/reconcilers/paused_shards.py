"""Shards that a worker does not claim for a while, because they are quarantined or were fenced; others continue."""

from collections.abc import Callable, Iterable
from typing import Final

from engine import diagnostics
from engine.log import port

UNREADABLE: Final = (port.LogCutError, port.LogCorruptedError)
"""Errors in the records of one shard, after which other shards can continue."""

QUARANTINE_MS: Final = 1_000
QUARANTINE_MS_MAX: Final = 30_000
FENCED_MS: Final = 5_000
FENCED_MS_MAX: Final = 80_000
"""The pause of a quarantined or fenced shard in milliseconds: the first one, and (``_MAX``) the longest one."""

_log = diagnostics.logger(__name__)


class PausedShards:
    """Shards that are not claimed during a pause; each further pause of a shard is twice as long, up to ``longest_ms``.

    Used for shards that another worker has fenced: during a reassignment a shard may be assigned to two workers, which
    fence each other. The pause lets the other worker complete its recovery even on a slow machine.
    """

    def __init__(
        self, clock: Callable[[], int], first_ms: int = FENCED_MS, longest_ms: int = FENCED_MS_MAX
    ) -> None:
        self._clock = clock
        self._first_ms = first_ms
        self._longest_ms = longest_ms
        self._until_ms: dict[int, int] = {}
        self._pauses_ms: dict[int, int] = {}

    def pause(self, shard: int) -> int:
        """Do not claim a shard until a pause has passed; return the length of the pause in milliseconds."""
        pause_ms = self._pauses_ms.get(shard, self._first_ms)
        self._until_ms[shard] = self._clock() + pause_ms
        self._pauses_ms[shard] = min(2 * pause_ms, self._longest_ms)
        return pause_ms

    def is_paused(self, shard: int) -> bool:
        """Whether the pause of a shard is still running."""
        return self._until_ms.get(shard, 0) > self._clock()

    def retain(self, shards: Iterable[int]) -> None:
        """End all pauses. Keep the pause lengths of these shards; other shards begin with the first pause again."""
        self._until_ms.clear()
        self._pauses_ms = {shard: self._pauses_ms[shard] for shard in shards if shard in self._pauses_ms}

    def dues_ms(self) -> list[int]:
        """Return the times at which running pauses end, in milliseconds since 1970."""
        now_ms = self._clock()
        return [until_ms for until_ms in self._until_ms.values() if until_ms > now_ms]


class Quarantine(PausedShards):
    """The quarantined shards of one worker: their records are missing or damaged, so they are skipped for a while.

    The worker retries a shard after its pause. Meanwhile an operator can restore the records, or a snapshot that makes
    the missing records unnecessary.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock, QUARANTINE_MS, QUARANTINE_MS_MAX)
        self._errors: dict[int, port.LogError] = {}

    def put(self, shard: int, error: port.LogError) -> None:
        """Quarantine a shard for a while and log the reason."""
        pause_ms = self.pause(shard)
        _log.error("shard quarantined", shard=shard, error=str(error), retry_in_s=pause_ms / 1_000)
        self._errors[shard] = error

    def release(self, shards: Iterable[int]) -> None:
        """End the quarantine of these shards; they were recovered."""
        for shard in shards:
            if self._errors.pop(shard, None) is not None:
                self._until_ms.pop(shard, None)
                self._pauses_ms.pop(shard, None)
                _log.info("shard recovered", shard=shard)

    def retain(self, shards: Iterable[int]) -> None:
        """End all pauses, so that the worker retries these shards at once; forget the errors of all other shards."""
        super().retain(shards)
        self._errors = {shard: error for shard, error in self._errors.items() if shard in self._pauses_ms}

    def errors(self) -> dict[int, port.LogError]:
        """Return the error of each quarantined shard; its message names the remedy."""
        return dict(sorted(self._errors.items()))
