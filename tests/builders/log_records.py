"""Builders of records: an event at its own position in a log, or at another one."""

import itertools
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import structs

from engine.log import port
from events import codec, keys, kube_objects, records, shapes, topics
from events.keys import partition_of
from events.records import Envelope, StoredRecord
from events.validation import manifests, verdicts

Build = Callable[[], shapes.Event]
_ids: Final = itertools.count(1)


def envelope(event_id: str = "", source: str = "/tests", time: str = "2024-05-25T09:49:51Z") -> Envelope:
    return Envelope(id=event_id or f"event-{next(_ids)}", source=source, type="", time=time)


def key_of(data: shapes.Event) -> str:
    raw = getattr(data, "manifest", None)
    return verdicts.key_of(data, kube_objects.read_head(raw) if isinstance(raw, msgspec.Raw) else None)


def record(data: shapes.Event, head: Envelope | None = None, key: str | None = None) -> records.Record:
    """Return the record of an event under its own key or another one, in that key's partition."""
    record_key = key_of(data) if key is None else key
    partition = partition_of(record_key, topics.TOPICS[data.event_type.topic].partitions)
    return codec.encode(data, head or envelope(), partition=partition, key=record_key)


def record_of_bytes(
    topic: str, headers: Mapping[str, str], value: bytes, key: str = "default/foo-deployment"
) -> records.Record:
    partition = keys.partition_of(key, topics.TOPICS[topic].partitions)
    return records.record(topic, partition, key, headers, value)


def structured(binary: records.Record) -> records.Record:
    """Return the record in structured content mode, in which its headers have no attributes."""
    decoded = codec.decode(binary)
    assert isinstance(decoded, codec.Decoded)
    attributes = {name: text for name, text in structs.asdict(decoded.envelope).items() if text}
    body = {"specversion": records.SPEC_VERSION, **attributes, "data": msgspec.Raw(binary.value)}
    headers = {records.CONTENT_TYPE: records.STRUCTURED}
    return records.record(binary.topic, binary.partition, binary.key, headers, msgspec.json.encode(body))


class Partition:
    """The fold of one partition; records are appended to it one after the other."""

    def __init__(self, topic: str, partition: int = 0, check: verdicts.Check = manifests.check) -> None:
        self.fold = verdicts.PartitionFold(verdicts.PartitionState(topic, partition), check)
        self.next_offset = 0
        self.records: list[StoredRecord] = []

    @classmethod
    def of(cls, data: shapes.Event) -> "Partition":
        """Return the partition of an event."""
        at = record(data)
        return cls(at.topic, at.partition)

    def take(self, appended: records.Record) -> verdicts.Verdict:
        stored = records.stored(appended, self.next_offset, self.next_offset + 1)
        self.next_offset += 1
        self.records.append(stored)
        return self.fold.take(stored)

    def submit(self, data: shapes.Event, head: Envelope | None = None) -> verdicts.Verdict:
        return self.take(record(data, head))

    def taken(self, data: shapes.Event, head: Envelope | None = None) -> verdicts.Taken:
        verdict = self.submit(data, head)
        assert isinstance(verdict, verdicts.Taken), verdict
        return verdict

    def refused(self, data: shapes.Event, head: Envelope | None = None) -> str:
        return words(self.submit(data, head))


def words(verdict: verdicts.Verdict) -> str:
    """Return a refusal as one line: verdict, field and reason."""
    assert isinstance(verdict, verdicts.Refused), verdict
    return f"{verdict.verdict}: {verdict.field}: {verdict.reason}"


async def all_records(log: port.NumberedLog) -> list[StoredRecord]:
    """Return all records of a log in order; a single read returns fewer if they are large."""
    stored: list[StoredRecord] = []
    while batch := await log.read_all(stored[-1].number if stored else 0, log.last_number()):
        stored += batch
    return stored
