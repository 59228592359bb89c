"""Projection of the Kubernetes Events that clients wrote in the newest ``KEPT_RECORDS`` records of the log.

The age of an Event is counted in record numbers, not in time, so the result does not depend on when the tables
were written.
"""

from typing import Final

import msgspec
from msgspec import Struct

from events import ids, keys, observations, times
from events.json_values import canonical_json
from events.kube_objects import KubeObject
from events.records import Envelope
from projections.documents.objects import instant
from projections.port import Row, Rows, Value

SCHEMA: Final = """
CREATE TABLE client_events (
    key TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    involved TEXT NOT NULL,
    body BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX client_events_by_number ON client_events (number);
CREATE INDEX client_events_by_involved ON client_events (involved);
"""
KEPT_RECORDS: Final = 20_000
"""Number of newest records of the log; Kubernetes Events that were last written before them are not listed."""

_SELECT: Final = "SELECT body FROM client_events WHERE number > ?"


class ClientEvent(Struct, frozen=True, array_like=True, gc=False):
    """An Event as last written, as an object of API version ``v1``, and its metadata.

    ``number`` is that of the record that last wrote it, ``first_number`` that of the record that created it.
    """

    number: int
    first_number: int
    uid: str
    created_ms: int
    manifest: msgspec.Raw

    @property
    def document(self) -> KubeObject:
        """The Event with its derived metadata."""
        value = KubeObject.from_json(self.manifest)
        return value.with_metadata(
            {
                "uid": self.uid,
                "resourceVersion": str(self.number),
                "creationTimestamp": instant(self.created_ms),
            }
        )


_decode: Final = msgspec.json.Decoder(ClientEvent).decode


class ClientEvents:
    """Folds the Events of clients."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._changed: dict[str, tuple[ClientEvent, Row] | None] = {}
        self._newest = 0

    def take(
        self,
        number: int,
        envelope: Envelope,
        data: observations.KubernetesEventWritten | observations.KubernetesEventDeleted,
    ) -> bool:
        """Fold the next record about an Event; return False, without effect, if the Event is malformed.

        A malformed one is not a JSON object, or its record has a malformed time.
        """
        key = data.record_key
        if isinstance(data, observations.KubernetesEventDeleted):
            self._newest = number
            self._changed[key] = None
            return True
        previous = self._get(key, number)
        try:
            event = ClientEvent(
                number,
                number if previous is None else previous.first_number,
                ids.object_uid(envelope.source, envelope.id, key) if previous is None else previous.uid,
                _time_of(envelope) if previous is None else previous.created_ms,
                data.manifest,
            )
            involved = event.document.text_at("involvedObject", "name")
        except (msgspec.MsgspecError, ValueError):
            return False  # only producers that bypass the write API record malformed Events
        self._newest = number
        self._changed[key] = event, (key, number, data.namespace, involved, canonical_json(event))
        return True

    def flush(self, rows: Rows) -> None:
        changed, self._changed = self._changed, {}
        rows.write("DELETE FROM client_events WHERE key = ?", ((key,) for key in changed))
        stored = (entry[1] for entry in changed.values() if entry is not None)
        rows.write("INSERT INTO client_events VALUES (?, ?, ?, ?, ?)", stored)
        if changed:
            rows.write("DELETE FROM client_events WHERE number <= ?", [(self._newest - KEPT_RECORDS,)])

    def _get(self, key: str, number: int) -> ClientEvent | None:
        if key in self._changed:
            entry = self._changed[key]
            # An Event that is too old counts as deleted, even if it is still in memory only.
            return entry[0] if entry is not None and entry[0].number > number - KEPT_RECORDS else None
        events = _events(self._rows, number, "key = ?", [key])
        return events[0] if events else None


def _time_of(envelope: Envelope) -> int:
    """Return the time of a record in milliseconds; 0 if its producer set none. Raises ValueError if it is malformed."""
    return times.from_text(envelope.time) if envelope.time else 0


def named(rows: Rows, namespace: str, name: str, number: int) -> ClientEvent | None:
    """Return a client's Event, as of a number of the log; None if it does not exist or is too old."""
    events = _events(rows, number, "key = ?", [keys.object_key("Event", namespace, name)])
    return events[0] if events else None


def listed(rows: Rows, number: int, *, namespace: str = "", involved: str = "") -> list[ClientEvent]:
    """Return the Events of clients as of a number of the log, ordered by the number of their last write.

    ``namespace`` and ``involved``, the name of the object that an Event is about, filter the Events unless they are
    empty.
    """
    filters = {"namespace": namespace, "involved": involved}
    terms = [f"{column} = ?" for column, text in filters.items() if text]
    return _events(rows, number, " AND ".join(terms), [text for text in filters.values() if text])


def written(rows: Rows, record_key: str, number: int) -> ClientEvent | None:
    """Return the Event that the record with this number wrote; None if a later record wrote or deleted the Event."""
    events = _events(rows, number, "key = ?", [record_key])
    return events[0] if events and events[0].number == number else None


def _events(rows: Rows, number: int, condition: str, values: list[str]) -> list[ClientEvent]:
    statement = f"{_SELECT}{f' AND {condition}' if condition else ''} ORDER BY number"
    where: list[Value] = [number - KEPT_RECORDS, *values]
    return [_decode(body) for (body,) in rows.select(statement, where)]
