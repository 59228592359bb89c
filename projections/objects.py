"""Projection of objects: templates, rebalancers, policies, namespaces and interpreters as last applied.

A manifest is stored as written; status and claims belong to the binding's row and are merged when an object
is rendered. The rows also store the object's head (version, generation, uid), on which the verdict on its next
write depends, so that a restart continues where it stopped.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from engine.domain import federated_quotas
from engine.domain.bindings import Mark
from events import kube_objects, shapes, topics
from events.json_values import Json, canonical_json
from events.kube_objects import KubeObject
from events.validation.verdicts import Head, Taken
from projections.documents import field_owners
from projections.owner_references import OwnerReferences
from projections.port import Queryable, Rows

SCHEMA: Final = """
CREATE TABLE objects (
    id INTEGER PRIMARY KEY,
    topic TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    api_version TEXT NOT NULL,
    number INTEGER NOT NULL,
    version INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    uid TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    digest TEXT NOT NULL,
    labels TEXT NOT NULL,
    manifest BLOB NOT NULL,
    status BLOB NOT NULL,
    owners BLOB NOT NULL,
    mark BLOB NOT NULL
);
CREATE INDEX objects_by_kind ON objects (kind, namespace, name);
"""

# Update in place: an upsert that does not change the indexed columns leaves the index alone.
_UPSERT: Final = """
INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, X'', X'', X'')
ON CONFLICT (id) DO UPDATE SET
    kind = excluded.kind, name = excluded.name, api_version = excluded.api_version, number = excluded.number,
    version = excluded.version, generation = excluded.generation, uid = excluded.uid,
    created_ms = excluded.created_ms, digest = excluded.digest, labels = excluded.labels,
    manifest = excluded.manifest,
    status = CASE WHEN objects.uid = excluded.uid THEN objects.status ELSE X'' END,
    owners = CASE WHEN objects.uid = excluded.uid THEN objects.owners ELSE X'' END,
    mark = CASE WHEN objects.uid = excluded.uid THEN objects.mark ELSE X'' END
"""
_DELETE: Final = "DELETE FROM objects WHERE id = ?"
_NUMBER: Final = "SELECT number FROM objects WHERE id = ?"
_STATUS: Final = """
UPDATE objects SET number = max(number, ?), version = max(version, ?), status = ?, owners = ?, mark = ? WHERE id = ?
"""
_SCAN: Final = "SELECT max(version) FROM objects JOIN keys USING (id)"
_HEADS_MAX: Final = 4_096
_HEAD: Final = """
SELECT version, generation, uid, created_ms, digest, api_version, kind, name
FROM objects JOIN keys USING (id) WHERE key = ? AND topic = ?
"""

_STORED: Final = """
SELECT key, number, version, generation, uid, created_ms, digest, api_version, kind, name, manifest, status, owners
FROM objects JOIN keys USING (id) WHERE key IN (SELECT value FROM json_each(?))
"""
_CONTAINED: Final = """
SELECT api_version, kind, name FROM objects WHERE namespace = ? ORDER BY api_version, kind, name
"""
_MANIFESTS: Final = """
SELECT namespace, name, manifest FROM objects
WHERE api_version = ? AND kind IN (SELECT value FROM json_each(?)) ORDER BY created_ms, id
"""
_MARK: Final = "SELECT count(*), coalesce(max(number), 0) FROM objects WHERE api_version = ? AND kind = ?"


class ObjectRow(NamedTuple):
    """A row of the objects' table; ``labels`` is JSON or empty.

    ``mark`` encodes the ``engine.domain.bindings.Mark`` of a template without a claim; empty if there is none.
    """

    key: str
    kind: str
    namespace: str
    name: str
    api_version: str
    number: int
    version: int
    generation: int
    uid: str
    created_ms: int
    labels: str
    manifest: bytes
    status: bytes = b""
    owners: bytes = b""
    mark: bytes = b""

    @property
    def marked(self) -> Mark | None:
        """The lazy policy that will claim the template; None if there is none."""
        return _decode_mark(self.mark) if self.mark else None


_decode_mark: Final = msgspec.json.Decoder(Mark).decode
COLUMNS: Final = ", ".join(f"o.{name}" for name in ObjectRow._fields[1:])
"""The columns of a row, without its key, of the table ``objects o``."""

_BY_ID: Final = f"SELECT '', {COLUMNS} FROM objects o WHERE id = ?"  # noqa: S608  # constants


class StoredObject(Struct, frozen=True, kw_only=True):
    """A stored object: ``manifest`` as written, and the metadata that the fold derives (``head``).

    ``number`` is the sequence number of its last write, ``owners`` the field owners of its ``status``; all bytes are
    JSON.
    """

    number: int
    head: Head
    manifest: bytes
    status: bytes = b""
    owners: bytes = b""

    @property
    def content(self) -> KubeObject:
        """The object as written, decoded."""
        return KubeObject.from_json(self.manifest)


class StoredManifest(NamedTuple):
    """The manifest of an object as written: JSON; producers that bypass the write API may violate the schema."""

    namespace: str
    name: str
    manifest: bytes


def by_keys(rows: Queryable, object_keys: Sequence[str]) -> dict[str, StoredObject]:
    """Return the objects that exist among those with these record keys, by key."""
    return {
        key: StoredObject(number=number, head=Head(*head), manifest=manifest, status=status, owners=owners)
        for key, number, *head, manifest, status, owners in rows.select(_STORED, (_json(object_keys),))
    }


def in_namespace(rows: Queryable, namespace: str) -> list[shapes.WorkloadRef]:
    """Return references to all objects in a namespace, ordered by version, kind and name."""
    return [
        shapes.WorkloadRef(api_version=api_version, kind=kind, name=name, namespace=namespace)
        for api_version, kind, name in rows.select(_CONTAINED, (namespace,))
    ]


def manifests(rows: Queryable, api_version: str, *kinds: str) -> list[StoredManifest]:
    """Return the manifests of some kinds of one API version, the oldest object first."""
    return [StoredManifest(*row) for row in rows.select(_MANIFESTS, (api_version, _json(kinds)))]


def mark_of_kind(rows: Queryable, api_version: str, kind: str) -> tuple[int, int]:
    """Return the count of a kind's objects and the number of the newest write; any change of them changes the pair."""
    ((count, newest),) = rows.select(_MARK, (api_version, kind))
    return count, newest


def _json(values: Sequence[str]) -> str:
    return msgspec.json.encode(values).decode()


class _Written(NamedTuple):
    """An object as an input wrote it; ``row`` has no status and no owners."""

    topic: str
    digest: str
    row: ObjectRow


class _WrittenStatus(NamedTuple):
    """Parameters of the statement ``_STATUS``."""

    number: int
    version: int
    status: bytes
    owners: bytes
    mark: bytes
    key_id: int


class Objects:
    """Collects writes of objects and their statuses."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._changed: dict[int, _Written | None] = {}
        self._statuses: dict[int, _WrittenStatus] = {}
        self._owner_references = OwnerReferences()

    def get(self, key_id: int) -> ObjectRow | None:
        """Return the object's row with unwritten changes and an empty ``key``; None if the object does not exist."""
        stored = self._rows.select(_BY_ID, (key_id,))
        current = ObjectRow(*stored[0]) if stored else None
        if key_id in self._changed:
            written = self._changed[key_id]
            current = None if written is None else _merged_row(current, written.row)
        status = self._statuses.get(key_id)
        return current if current is None or status is None else _with_status(current, status)

    def number(self, key_id: int) -> int:
        """Return the number of the record that last wrote the object or its status; 0 if it does not exist."""
        if key_id in self._changed:
            written = self._changed[key_id]
            number = 0 if written is None else written.row.number
        else:
            stored = self._rows.select(_NUMBER, (key_id,))
            number = int(stored[0][0]) if stored else 0
        status = self._statuses.get(key_id)
        return number if not number or status is None else max(number, status.number)

    def labels(self, key_id: int) -> dict[str, str]:
        """Return the labels of an object; empty if it does not exist."""
        row = self.get(key_id)
        return msgspec.json.decode(row.labels, type=dict[str, str]) if row is not None and row.labels else {}

    def put(self, key_id: int, taken: Taken, manifest: kube_objects.Manifest, raw: msgspec.Raw) -> None:
        """Store the object that an input wrote."""
        head, record = taken.head, taken.record
        if head is None:
            return
        labels = manifest.metadata.labels
        row = ObjectRow(
            "",
            manifest.kind,
            manifest.metadata.namespace,
            manifest.metadata.name,
            manifest.api_version,
            record.number,
            head.version,
            head.generation,
            head.uid,
            head.created_ms,
            canonical_json(labels).decode() if labels else "",
            bytes(raw),
        )
        self._changed[key_id] = _Written(record.topic, head.digest, row)
        self._owner_references.put(key_id, row.manifest)

    def put_status(
        self, key_id: int, taken: Taken, status: shapes.Object, owned: tuple[shapes.FieldsOwner, ...]
    ) -> None:
        """Store the status that a client wrote, and the owners of its fields."""
        if taken.head is not None:
            # Check the topic as well as the kind: in another topic, a custom kind may have the same name.
            is_quota = taken.record.topic == topics.POLICIES and taken.head.kind == federated_quotas.KIND
            current = self.get(key_id)
            if is_quota and current is not None:
                status = federated_quotas.with_stored_engine_fields(status, current.status)
            self._statuses[key_id] = _WrittenStatus(
                taken.record.number,
                taken.head.version,
                msgspec.json.encode(status),
                field_owners.encode(owned),
                b"" if current is None else current.mark,
                key_id,
            )

    def put_own_status(self, key_id: int, number: int, status: Json) -> bool:
        """Store a status of which the engine changed its own fields; return False if the object does not exist."""
        current = self.get(key_id)
        if current is None:
            return False
        self._put_shown(key_id, number, current._replace(status=msgspec.json.encode(status)))
        return True

    def put_mark(self, key_id: int, number: int, mark: Mark | None) -> bool:
        """Store or remove the mark of a template; return False if this changes nothing, or no template exists."""
        current = self.get(key_id)
        encoded = b"" if mark is None else msgspec.json.encode(mark)
        if current is None or current.mark == encoded:
            return False
        self._put_shown(key_id, number, current._replace(mark=encoded))
        return True

    def touch(self, key_id: int, number: int, uid: str) -> bool:
        """Set the number of an object that is rendered differently, although no client wrote the object.

        Return False, without effect, if no object with this uid exists.
        """
        current = self.get(key_id)
        if current is None or current.uid != uid:
            return False
        self._put_shown(key_id, number, current)
        return True

    def _put_shown(self, key_id: int, number: int, row: ObjectRow) -> None:
        """Store the status and the mark of a row, without a write by a client."""
        self._statuses[key_id] = _WrittenStatus(number, 0, row.status, row.owners, row.mark, key_id)

    def remove(self, key_id: int) -> None:
        self._changed[key_id] = None
        self._statuses.pop(key_id, None)
        self._owner_references.remove(key_id)

    def flush(self, rows: Rows) -> None:
        changed, self._changed = self._changed, {}
        # Statuses last: `remove` drops a pending status, so each one left belongs to the object that is
        # stored now.
        rows.write(_DELETE, ((key_id,) for key_id, written in changed.items() if written is None))
        rows.write(
            _UPSERT,
            (
                (key_id, topic, *row[1:10], digest, row.labels, row.manifest)
                for key_id, written in changed.items()
                if written is not None
                for topic, digest, row in (written,)
            ),
        )
        statuses, self._statuses = self._statuses, {}
        rows.write(_STATUS, statuses.values())
        self._owner_references.flush(rows)


def _merged_row(stored: ObjectRow | None, row: ObjectRow) -> ObjectRow:
    """Return the row as ``_UPSERT`` will store it: with the stored status and field owners if the uid is the same."""
    if stored is None or stored.uid != row.uid:
        return row
    return row._replace(status=stored.status, owners=stored.owners, mark=stored.mark)


def _with_status(current: ObjectRow, written: _WrittenStatus) -> ObjectRow:
    """Return the row as the statement ``_STATUS`` will store it."""
    return current._replace(
        number=max(current.number, written.number),
        version=max(current.version, written.version),
        status=written.status,
        owners=written.owners,
        mark=written.mark,
    )


def scan(rows: Queryable) -> None:
    """Read the heads of all objects, so that damage shows when the table is opened; raises sqlite3.DatabaseError."""
    rows.select(_SCAN)


class Heads:
    """Heads of the objects in a topic; keeps those in memory that recent records are about."""

    def __init__(self, rows: Rows, topic: str) -> None:
        self._rows = rows
        self._topic = topic
        self._known: dict[str, Head | None] = {}

    def get(self, key: str) -> Head | None:
        """Return the head of the object with this key; None if it does not exist."""
        if key not in self._known:
            stored = self._rows.select(_HEAD, (key, self._topic))
            self._known[key] = Head(*stored[0]) if stored else None
        return self._known[key]

    def __setitem__(self, key: str, head: Head) -> None:
        self._known[key] = head

    def __delitem__(self, key: str) -> None:
        self._known[key] = None

    def flush(self) -> None:
        """Drop the heads from memory if there are many; ``Objects`` has written them to the table."""
        if len(self._known) > _HEADS_MAX:
            self._known = {}
