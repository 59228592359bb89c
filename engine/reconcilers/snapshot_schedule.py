"""Schedule of a worker's snapshots, and the choice of the snapshot to start from."""

from collections.abc import Callable, Sequence
from typing import Final

from engine.deciders import shard_fold
from engine.deciders.facts import Facts
from engine.log import port
from engine.reconcilers import snapshot_storage, snapshots

SNAPSHOT_RECORDS: Final = 200_000
"""New records after which a snapshot is due; a recovery reads this many within a few seconds."""

SNAPSHOT_RECORDS_MAX: Final = 2_000_000
"""While keys wait to be decided, no snapshot is due before there are this many new records."""

SNAPSHOT_RECORDS_MIN: Final = 10_000
SNAPSHOT_INTERVAL_MS: Final = 600_000
"""A snapshot is due this long after the last one if there are at least ``SNAPSHOT_RECORDS_MIN`` new records.

A recovery reads fewer records than that in less than a second.
"""


class SnapshotSchedule:
    """Snapshots of one worker; none without ``storage``. ``clock`` returns milliseconds since 1970."""

    def __init__(
        self,
        log: port.Log,
        clock: Callable[[], int],
        storage: snapshot_storage.SnapshotStorage | None,
    ) -> None:
        self._log = log
        self._clock = clock
        self._storage = storage
        self._stored_moves = 0
        self._stored_ms = 0

    @property
    def is_on(self) -> bool:
        """Whether snapshots are stored at all."""
        return self._storage is not None

    async def newest(self, shards: Sequence[int]) -> dict[int, snapshots.Snapshot]:
        """Return the newest snapshot of each shard that has one, and start counting new records from it."""
        self._stored_moves, self._stored_ms = 0, self._clock()
        if self._storage is None:
            return {}
        newest_of = await snapshots.newest_of_shards(self._log, self._storage, shards)
        for snapshot in newest_of.values():
            self._stored_moves = snapshot.number if self._storage.is_shared else self._log.change_count()
        return newest_of

    def due_ms(self, *, is_storm: bool) -> int | None:
        """Return when a snapshot is due; None if snapshots are off or there are too few new records.

        At least ``SNAPSHOT_RECORDS_MIN`` new records are necessary, or ``SNAPSHOT_RECORDS_MAX`` while keys wait
        (``is_storm``).
        """
        new_records = self._log.change_count() - self._stored_moves
        if not self.is_on or new_records < (SNAPSHOT_RECORDS_MAX if is_storm else SNAPSHOT_RECORDS_MIN):
            return None
        return self._stored_ms + SNAPSHOT_INTERVAL_MS * (new_records < SNAPSHOT_RECORDS)

    async def store(
        self, facts: Facts, folds: Sequence[tuple[shard_fold.ShardFold, int]], *, is_whole: bool
    ) -> None:
        """Store the shards, each with the offset of its last step; ``is_whole``: no assigned shard is missing."""
        if self._storage is None or (self._storage.is_shared and not is_whole):
            # An incomplete snapshot must not replace one that has all shards.
            return
        # Set before writing: if the storage fails, the next attempt waits until the next snapshot is due.
        self._stored_moves, self._stored_ms = self._log.change_count(), self._clock()
        by_shard = {fold.state.shard: (fold, offset) for fold, offset in folds}
        for store, shards in self._storage.of(list(by_shard)):
            stored = [by_shard[shard] for shard in shards]
            # On Kafka each process counts ``change_count`` from its own start. Step numbers are used instead, which
            # are the same for all workers.
            number = (
                self._stored_moves
                if self._storage.is_shared
                else sum(fold.state.number for fold, _ in stored)
            )
            await snapshots.save(store, number, facts, stored)
