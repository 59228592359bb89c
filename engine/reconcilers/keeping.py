"""When a worker keeps snapshots of its shards, and which one it begins with."""

from collections.abc import Callable, Sequence
from typing import Final

from engine.deciders import folds
from engine.deciders.facts import Facts
from engine.log import port
from engine.reconcilers import keepers, snapshots

SNAPSHOT_RECORDS: Final = 200_000
"""With so many new records a snapshot is due: no recovery has to read many more, which takes a few seconds."""

SNAPSHOT_RECORDS_MAX: Final = 2_000_000
"""In a storm, decisions come first and the snapshot waits, but not beyond so many."""

SNAPSHOT_RECORDS_MIN: Final = 10_000
SNAPSHOT_INTERVAL_MS: Final = 600_000
"""With so many it is due when the last one is so old; fewer are read again in less than a second."""


class Keeping:
    """The snapshots of one worker; without ``places`` there are none. ``clock`` gives milliseconds since 1970."""

    def __init__(self, log: port.Log, clock: Callable[[], int], places: keepers.Places | None) -> None:
        self._log = log
        self._clock = clock
        self._places = places
        self._kept_moves = 0
        self._kept_ms = 0

    @property
    def is_on(self) -> bool:
        """Whether there is a place for snapshots."""
        return self._places is not None

    async def newest(self, shards: Sequence[int]) -> dict[int, snapshots.Snapshot]:
        """The newest snapshot of each shard that has one; the next one is due by what comes after them."""
        found: dict[int, snapshots.Snapshot] = {}
        self._kept_moves, self._kept_ms = 0, self._clock()
        if self._places is None:
            return found
        for keeper, its in self._places.of(shards):
            snapshot = await snapshots.newest(self._log, keeper, its)
            if snapshot is not None:
                found.update(dict.fromkeys(its, snapshot))
                self._kept_moves = snapshot.number if self._places.is_shared else self._log.moves()
        return found

    def due_ms(self, *, is_storm: bool) -> int | None:
        """When a snapshot is due; None while too little is new, or, in a storm, too much else is to be done."""
        new = self._log.moves() - self._kept_moves
        if self._places is None or new < SNAPSHOT_RECORDS_MIN:
            return None
        if new < SNAPSHOT_RECORDS_MAX and is_storm:
            return None
        return self._kept_ms + SNAPSHOT_INTERVAL_MS * (new < SNAPSHOT_RECORDS)

    async def keep(
        self, facts: Facts, level: Sequence[tuple[folds.ShardFold, int]], *, is_whole: bool
    ) -> None:
        """Keeps the shards, each given with the offset of its last step; ``is_whole`` where none is missing."""
        if self._places is None or (self._places.is_shared and not is_whole):
            # A snapshot of all that has not all of them would take the place of one that has.
            return
        # Set first, so that a place which can't be written is left alone until the next one is due.
        self._kept_moves, self._kept_ms = self._log.moves(), self._clock()
        by_shard = {fold.state.shard: (fold, offset) for fold, offset in level}
        for keeper, shards in self._places.of(list(by_shard)):
            its = [by_shard[shard] for shard in shards]
            number = self._kept_moves if self._places.is_shared else sum(fold.state.number for fold, _ in its)
            await snapshots.save(keeper, number, facts, its)
