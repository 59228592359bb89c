"""Verdicts on the inputs in all partitions of a log, from the same pure fold that owners of shards use.

The state survives a restart. The heads of objects and clusters are in the tables; those of objects are read when they
are needed. A partition's recent ids, the ids of its last records, serve to recognize repeated records. They are read
from the log again when the partition's next record arrives.
"""

from collections.abc import Iterable

import msgspec

from events import kube_objects, limits, topics
from events.records import StoredRecord
from events.validation import verdicts
from events.validation.recent_ids import RecentIds
from projections import clusters as cluster_view
from projections import objects
from projections.port import Rows

INPUT_TOPICS = (topics.CLUSTERS, topics.POLICIES, topics.SPECS, topics.HEALTH, topics.LINKS)


class Inputs:
    """The folds of all input partitions."""

    def __init__(self, rows: Rows, check: verdicts.Check) -> None:
        self._folds: dict[tuple[str, int], verdicts.PartitionFold] = {}
        self._check = check
        self._remembered: set[tuple[str, int]] = set()
        objects.scan(rows)
        self._heads = {topic: objects.Heads(rows, topic) for topic in (topics.POLICIES, topics.SPECS)}
        for cluster in cluster_view.stored_all(rows):
            self._fold(topics.CLUSTERS, 0).state.heads[cluster.name] = cluster.head

    def take(self, record: StoredRecord) -> verdicts.Verdict:
        """Return the verdict on the next record of its partition."""
        self._remembered.add((record.topic, record.partition))
        return self._fold(record.topic, record.partition).take(record)

    def head(self, topic: str, key: str) -> verdicts.Head | None:
        """Return the head of the object with this key; None if there is none."""
        return self._heads[topic].get(key)

    def flush(self, rows: Rows) -> None:  # noqa: ARG002  # a view, which writes nothing
        """Drop heads from memory if there are many; the tables contain them."""
        for heads in self._heads.values():
            heads.flush()

    def first_records_without_ids(self, batch: Iterable[StoredRecord]) -> list[StoredRecord]:
        """Return, for each partition whose recent ids are not in memory, its first record in a batch."""
        first: dict[tuple[str, int], StoredRecord] = {}
        for record in batch:
            partition = (record.topic, record.partition)
            if record.topic in INPUT_TOPICS and partition not in self._remembered:
                first.setdefault(partition, record)
        return [record for record in first.values() if record.offset > 0]

    def remember(self, before: StoredRecord, recent: RecentIds) -> None:
        """Set the recent ids that a partition had directly before its record ``before``."""
        self._fold(before.topic, before.partition).state.recent = recent
        self._remembered.add((before.topic, before.partition))

    def _fold(self, topic: str, partition: int) -> verdicts.PartitionFold:
        slot = (topic, partition)
        if slot not in self._folds:
            state = verdicts.PartitionState(topic, partition)
            self._folds[slot] = verdicts.PartitionFold(state, self._check, self._heads.get(topic))
        return self._folds[slot]


class RecentIdsRebuild:
    """Rebuilds a partition's recent ids from the records in the ``limits.RECENT_IDS`` offsets before ``before``."""

    def __init__(self, before: StoredRecord) -> None:
        self._before = before.offset
        self._fold = verdicts.PartitionFold(verdicts.PartitionState(before.topic, before.partition), _accept)

    @property
    def recent(self) -> RecentIds:
        return self._fold.state.recent

    def take(self, records: Iterable[StoredRecord]) -> None:
        """Fold records of the partition, in order; those outside the range of offsets have no effect."""
        for record in records:
            if self._before - limits.RECENT_IDS <= record.offset < self._before:
                self._fold.take(record)


def _accept(manifest: kube_objects.Manifest, raw: msgspec.Raw) -> None:
    """Accept every object without a check: recent ids do not depend on the content of the records."""
