"""Hand-written logs: inputs as producers write them, steps as a shard's owner writes them."""

from collections.abc import Sequence
from typing import Final

from events import (
    chain,
    codec,
    decisions,
    ids,
    keys,
    kube_objects,
    records,
    shapes,
    times,
    topics,
)
from events.records import Envelope
from events.validation import manifests
from events.validation.verdicts import key_of
from projections.fold import Fold
from projections.store import Store

START_MS: Final = times.from_text("2024-05-25T09:49:51Z")


class RecordBuilder:
    """Builds records in sequence: ids count up, and each input advances the time by a second.

    With ``is_bare``, steps declare no outputs, as in releases before 0.5.
    """

    def __init__(self, *, is_bare: bool = False) -> None:
        self.at_ms = START_MS
        self.is_bare = is_bare
        self._ids = 0
        self._steps: dict[int, tuple[int, str]] = {}

    def input(self, data: shapes.Event, *, source: str = "/tests", event_id: str = "") -> records.Record:
        """Return an input with its own key and partition."""
        self._ids += 1
        self.at_ms += 1000
        key = key_of(data, _read(data))
        topic = data.event_type.topic
        head = Envelope(
            id=event_id or f"input-{self._ids}",
            source=source,
            type=data.event_type.type,
            subject=key,
            time=times.to_text(self.at_ms),
        )
        return codec.encode(
            data, head, partition=keys.partition_of(key, topics.TOPICS[topic].partitions), key=key
        )

    def step(
        self, shard: int, outputs: Sequence[shapes.Event], *, term: int = 1, cause: str = ""
    ) -> list[records.Record]:
        """Return the next step of the shard, and its outputs."""
        number, previous = self._steps.get(shard, (0, ""))
        number += 1
        output_records = [
            self._output(data, shard, term, number, index, cause) for index, data in enumerate(outputs, 1)
        ]
        taken = decisions.StepTaken(
            shard=shard,
            number=number,
            term=term,
            time_ms=self.at_ms,
            release="test",
            ends=dict.fromkeys((*topics.FACT_TOPICS, *topics.OWN_TOPICS), 0),
            outputs=len(outputs),
            previous=previous,
            declared="" if self.is_bare else "".join(chain.mark_of(record) for record in output_records),
        )
        batch = [self._output(taken, shard, term, number, 0, cause), *output_records]
        self._steps[shard] = (number, chain.step_digest(batch[0].value))
        return batch

    def decide(self, *outputs: shapes.Event, cause: str = "") -> list[records.Record]:
        """Return a step of the shard that owns the first output's key."""
        return self.step(keys.shard_of(_subject(outputs[0])), outputs, cause=cause)

    def _output(
        self, data: shapes.Event, shard: int, term: int, number: int, index: int, cause: str
    ) -> records.Record:
        topic = data.event_type.topic
        head = Envelope(
            id=ids.output_id(shard, term, number, index),
            source=f"/reballast/shards/{shard}",
            type=data.event_type.type,
            subject=_subject(data),
            time=times.to_text(self.at_ms),
            causationid=cause,
        )
        if topic == topics.DECISIONS:
            return codec.encode(data, head, partition=shard, key=str(shard))
        key = getattr(data, "cluster", "") or _subject(data)
        return codec.encode(data, head, partition=keys.shard_of(key), key=key)


def _read(data: shapes.Event) -> kube_objects.Manifest | None:
    body = getattr(data, "manifest", None)
    return None if body is None else kube_objects.read_head(body)


def _subject(data: shapes.Event) -> str:
    if key := getattr(data, "key", ""):
        return str(key)
    name = getattr(data, "name", "")
    return keys.rebalancer_key(name) if name else ""


def fold_all(store: Store, batch: list[records.Record]) -> None:
    """Fold the records as if they were the whole log."""
    ends: dict[tuple[str, int], int] = {}
    with store.writing() as rows:
        fold = Fold(rows, manifests.check)
        for number, record in enumerate(batch, 1):
            where = (record.topic, record.partition)
            fold.take(records.stored(record, ends.get(where, 0), number))
            ends[where] = ends.get(where, 0) + 1
        fold.flush(rows)
