"""Lists and watches of Kubernetes Events, from the timeline of one object or from the newest part of the log."""

import zlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct
from starlette.responses import Response

from engine.domain import federated_quotas
from engine.http.kube import rendering, requests
from engine.http.kube.kubernetes_events import of_bindings, of_clusters
from engine.http.kube.kubernetes_events.subjects import (
    QUOTAS,
    Message,
    ObjectMessage,
    ObjectReference,
    Subjects,
    time_ms,
)
from engine.http.kube.line_streams import Lines
from engine.http.kube.requests import ObjectFilter, Query
from engine.kubeapi.admission import built_in_shapes
from engine.kubeapi.conversion import kubernetes_events
from engine.kubeapi.errors import status_objects
from engine.kubeapi.schema.resources import Resource
from engine.log import reading
from engine.log.port import LogCutError
from engine.writing.read_side import ReadSide
from events import codec, keys, observations, times, topics
from events.json_values import DECODING_ERRORS, Json
from events.kube_objects import KubeObject
from events.records import StoredRecord
from projections import client_events, query, works
from projections.documents.works import cluster_of
from projections.port import Rows


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


def derived_event(occurrence: Occurrence, api_version: str) -> KubeObject:
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


_OF_ONE_MAX: Final = 400
_WITHOUT_EVENTS: Final = (topics.SPECS, topics.OBSERVATIONS, topics.LINKS, topics.REJECTIONS)
"""Topics whose records may be large, and from which no Event is derived."""

_BATCH: Final = 256
_NEW: Final = "NEW"
_WATCHERS_MAX: Final = 64
_ABOUT: Final = ("involvedObject", "regarding")
_BOUND: Final = ("ResourceBinding", "ClusterResourceBinding")


class Events:
    """List and watch Events: those that the engine derives from the log, and those that clients write."""

    def __init__(self, reads: ReadSide) -> None:
        self._reads = reads
        self._watchers: set[Response] = set()

    async def listed(
        self, resource: Resource, namespace: str, fits: ObjectFilter
    ) -> tuple[list[KubeObject], int]:
        """The matching Events, and the sequence number up to which the log was searched."""
        number = await self._reads.catch_up()
        records = await self._records(namespace, fits, number)
        shown = [value for _type, value in await self._shown(resource, records, of_clients=False)]
        shown += await self._of_clients(resource, namespace, fits, number)
        shown.sort(key=lambda event: int(event.resource_version or 0))
        return [event for event in shown if _is_in(event, namespace) and fits(event)], number

    async def named(self, resource: Resource, namespace: str, name: str) -> KubeObject | None:
        """The Event with this name; None if there is none."""
        number = await self._reads.catch_up()

        event = await self._reads.peek(lambda rows: client_events.named(rows, namespace, name, number))
        if event is not None:
            return _of_client(event.document, resource.api_version)
        events, _number = await self.listed(resource, namespace, ObjectFilter(resource, Query(), name))
        return events[0] if events else None

    async def watched(
        self,
        resource: Resource,
        namespace: str,
        query_: Query,
        form: requests.Form,
        clock_ms: Callable[[], int],
    ) -> Response:
        """The response to a watch; raises StatusError."""
        if wrong := requests.version_fault(query_.resource_version):
            raise status_objects.bad_request(wrong)
        log, since = self._reads.log, int(query_.resource_version or 0)
        # The client may have got the number from another replica, or from the views' process, which can be ahead.
        if since > log.last_number() and since > await log.newest():
            raise status_objects.expired()
        if len(self._watchers) >= _WATCHERS_MAX:
            raise status_objects.too_many_requests(
                1, f"the limit of {_WATCHERS_MAX} watches of Events is reached"
            )
        fits = ObjectFilter(resource, query_)
        lines = self._lines(resource, namespace, query_, form, fits, clock_ms)
        return Lines(lines, query_.timeout_s, self._watchers)

    async def _lines(
        self,
        resource: Resource,
        namespace: str,
        query: Query,
        form: requests.Form,
        fits: ObjectFilter,
        clock_ms: Callable[[], int],
    ) -> AsyncGenerator[bytes]:
        def line(value: KubeObject, change: str = "ADDED") -> bytes:
            return rendering.line(change, resource, value, form, clock_ms())

        try:
            after = int(query.resource_version or 0)
            if query.lists_first:
                events, after = await self.listed(resource, namespace, fits)
                for event in events:
                    yield line(event)
            elif not after:
                after = await self._reads.catch_up()
            if query.initial_events and query.bookmarks:
                # Informers wait for this bookmark.
                yield rendering.bookmark(resource, form, after, ends_list=True)
            since, reported = after, set[str]()
            while await self._reads.is_more(after):
                records, after = await self._reads.folded_records(after, _BATCH)
                for change, event in await self._shown(resource, records, since):
                    if _is_in(event, namespace) and fits(event):
                        yield line(event, _first(change, event, reported))
        except LogCutError as error:
            yield rendering.error_line(status_objects.expired(str(error)))

    async def _records(self, namespace: str, fits: ObjectFilter, end: int) -> list[StoredRecord]:
        numbers = await self._reads.peek(lambda rows: _timeline(rows, namespace, fits))
        if numbers is None:
            start = max(end - client_events.KEPT_RECORDS, 0)
            newest = reading.of_all(self._reads.log, start, end)
            return [record async for record in newest if _has_events(record)]
        records: list[StoredRecord] = []
        for number in numbers:
            records.extend(await self._reads.log.read_all(number - 1, 1))
        return records

    async def _of_clients(
        self, resource: Resource, namespace: str, fits: ObjectFilter, number: int
    ) -> list[KubeObject]:
        """The Events that clients wrote; only those about the object that a field selector names, if it names one."""
        involved = next((name for prefix in _ABOUT if (name := fits.fields.exact(f"{prefix}.name"))), "")

        def select(rows: Rows) -> list[KubeObject]:
            written = client_events.listed(rows, number, namespace=namespace, involved=involved)
            return [_of_client(event.document, resource.api_version) for event in written]

        return await self._reads.peek(select)

    async def _shown(
        self, resource: Resource, records: Iterable[StoredRecord], since: int = 0, *, of_clients: bool = True
    ) -> list[tuple[str, KubeObject]]:
        shown = list(records)
        written = [event for event in shown if of_clients and event.topic == topics.OBSERVATIONS]
        return await self._reads.peek(
            lambda rows: _events_of(rows, resource.api_version, shown, written, since)
        )


def _timeline(rows: Rows, namespace: str, fits: ObjectFilter) -> list[int] | None:
    """Numbers of the newest records about the object that a field selector names; None if no object is named."""
    timelines = _keys(rows, namespace, fits)
    numbers = {number for key in timelines for number in query.newest(rows, key, limit=_OF_ONE_MAX)}
    return sorted(numbers)[-_OF_ONE_MAX:] if timelines else None


def _events_of(
    rows: Rows, api_version: str, records: list[StoredRecord], written: list[StoredRecord], since: int
) -> list[tuple[str, KubeObject]]:
    """Return Events, each with its watch event type (ADDED, MODIFIED, DELETED) or with NEW (see ``_change``).

    The engine derives Events from ``records``. Clients wrote the Events in the records ``written``; each of these is
    returned in its newest state.
    """
    changed = [change for record in written if (change := _change(rows, record, since)) is not None]
    return [
        *(
            ("ADDED", derived_event(occurrence, api_version))
            for occurrence in occurred(records, Subjects(rows))
        ),
        *((kind, _of_client(value, api_version)) for kind, value in changed),
    ]


def _of_client(event: KubeObject, api_version: str) -> KubeObject:
    """Return an Event that a client wrote, with the fields that every Event has."""
    return kubernetes_events.to_served(built_in_shapes.shown(event), api_version)


def _has_events(record: StoredRecord) -> bool:
    """Whether Events may be derived from a record; large records without Events, such as policies, are not decoded."""
    if record.topic == topics.POLICIES:
        return record.key.startswith(QUOTAS)
    return record.topic not in _WITHOUT_EVENTS


def _first(change: str, event: KubeObject, reported: set[str]) -> str:
    """Return the watch event type of a change; NEW becomes ADDED for the first change of an Event, then MODIFIED.

    The first change that is reported need not be the write that created the Event.
    """
    if change != _NEW:
        return change
    is_known = event.uid in reported
    reported.add(event.uid)
    return "MODIFIED" if is_known else "ADDED"


def _change(rows: Rows, record: StoredRecord, since: int) -> tuple[str, KubeObject] | None:
    """Return the watch event type and the Event of a client's write; NEW if the Event was created after ``since``.

    None for any other record, and for a write if a later record wrote or deleted the same Event.
    """
    match codec.decode(record):
        case codec.Decoded(data=observations.KubernetesEventWritten()):
            event = client_events.written(rows, record.key, record.number)
            if event is None:
                return None
            return _NEW if event.first_number > since else "MODIFIED", event.document
        case codec.Decoded(data=observations.KubernetesEventDeleted(manifest=manifest)):
            try:
                value = KubeObject.from_json(manifest)
            except DECODING_ERRORS:
                return None  # producers may record anything
            return "DELETED", value.with_metadata({"resourceVersion": str(record.number)})
        case _:
            return None


def _keys(rows: Rows, namespace: str, fits: ObjectFilter) -> list[str]:
    """The timeline keys of the object that a field selector names; empty if the selector does not name one object."""
    for prefix in _ABOUT:
        name, kind = fits.fields.exact(f"{prefix}.name"), fits.fields.exact(f"{prefix}.kind")
        if name and kind:
            event_namespace = namespace or fits.fields.exact(f"{prefix}.namespace") or ""
            # A custom kind may have the name of a kind of Karmada; its objects are templates.
            of_template = keys.binding_key(kind, event_namespace, name)
            return [*_own_keys(rows, kind, event_namespace, name), of_template]
    return []


def _own_keys(rows: Rows, kind: str, namespace: str, name: str) -> list[str]:
    """The timeline keys of an object of one of Karmada's kinds; none for other kinds, whose objects are templates."""
    if kind in _BOUND:
        return [f"{namespace}/{name}" if kind == _BOUND[0] else name]
    if kind == "Cluster":
        return [keys.cluster_key(name)]
    if kind == "Work":
        # If no such work exists, use the name, which is not a key of a binding and finds no records.
        return [works.key_of(rows, cluster_of(namespace) or "", name) or name]
    if kind == federated_quotas.KIND:
        # Clusters report on the ResourceQuota of the same name, which the engine creates from the
        # FederatedResourceQuota.
        of_members = keys.binding_key(federated_quotas.QUOTA[1], namespace, name)
        return [keys.object_key(kind, namespace, name), of_members]
    return []


def _is_in(value: KubeObject, namespace: str) -> bool:
    return not namespace or value.namespace == namespace
