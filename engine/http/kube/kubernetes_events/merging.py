"""Derive Kubernetes Events from records. Repeated Events about an object are merged and counted."""

import zlib
from collections.abc import Iterable, Iterator

from msgspec import Struct

from engine.http.kube.kubernetes_events import of_bindings, of_clusters
from engine.http.kube.kubernetes_events.message import Message, ObjectMessage, ObjectReference
from engine.http.kube.kubernetes_events.subjects import Subjects, time_ms
from engine.kubeapi.conversion import kubernetes_events
from events import codec, times
from events.json_values import Json
from events.kube_objects import KubeObject
from events.records import StoredRecord


class Occurrence(Struct, frozen=True, kw_only=True):
    """One Event: the object that it is about (``involved``), its text, and how often and when it occurred.

    ``first`` and ``last`` are times, ``first_number`` and ``last_number`` the sequence numbers of the records.
    """

    involved: ObjectReference
    message: Message
    count: int
    first_number: int
    last_number: int
    first: str
    last: str


def occurred(records: Iterable[StoredRecord], subjects: Subjects) -> list[Occurrence]:
    """Derive Events from records, merging repeated ones; ordered by their last occurrence."""
    merged: dict[tuple[str, str, str, str], Occurrence] = {}
    for record, occurrence in _object_messages(records, subjects):
        message, involved = occurrence
        time = times.to_seconds_text(time_ms(record))
        identity = (involved.kind, involved.uid, message.reason, message.message)
        before = merged.pop(identity, None)
        merged[identity] = Occurrence(
            involved=involved,
            message=message,
            count=before.count + 1 if before else 1,
            first_number=before.first_number if before else record.number,
            last_number=record.number,
            first=before.first if before else time,
            last=time,
        )
    return list(merged.values())


def event(occurrence: Occurrence, api_version: str) -> KubeObject:
    """The Event as an object of the core group or of ``events.k8s.io``."""
    involved, message = occurrence.involved, occurrence.message
    # One record can cause several Events about an object; the checksum makes their names different.
    text = zlib.crc32(f"{message.reason} {message.message}".encode())
    metadata: Json = {
        "name": f"{involved.name}.{occurrence.first_number:08x}{text:08x}",
        "namespace": involved.namespace or "default",
        "uid": f"{text:08x}-0000-4000-8000-{occurrence.first_number:012x}",
        "resourceVersion": str(occurrence.last_number),
        "creationTimestamp": occurrence.first,
    }
    value: Json = {
        "apiVersion": kubernetes_events.CORE,
        "kind": "Event",
        "metadata": metadata,
        "type": message.type,
        "involvedObject": involved.plain(),
        "reason": message.reason,
        "message": message.message,
        "source": {"component": message.reporter},
        "reportingComponent": message.reporter,
        "reportingInstance": "",
        "firstTimestamp": occurrence.first,
        "lastTimestamp": occurrence.last,
        "eventTime": None,
        "count": occurrence.count,
    }
    return kubernetes_events.to_served(KubeObject(value), api_version)


def _object_messages(
    records: Iterable[StoredRecord], subjects: Subjects
) -> Iterator[tuple[StoredRecord, ObjectMessage]]:
    sources = (
        of_bindings.Bindings(subjects),
        of_clusters.Works(subjects),
        of_clusters.Clusters(subjects),
        of_clusters.Quotas(subjects),
    )
    for record in records:
        if (data := codec.event_of(record)) is not None:
            for source in sources:
                for occurrence in source.take(record, data):
                    yield record, occurrence
