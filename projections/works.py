"""Projection of works: what each cluster must run now."""

from typing import Final

import msgspec
from msgspec import Struct

from events import ids, shapes
from events import works as events
from events.envelope import Envelope
from projections.port import Row, Rows

SCHEMA: Final = """
CREATE TABLE works (
    cluster INTEGER NOT NULL,
    id INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (cluster, id)
) WITHOUT ROWID;
CREATE INDEX works_of_key ON works (id);
CREATE TABLE overridden (
    policy TEXT NOT NULL,
    cluster INTEGER NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (policy, cluster, id)
) WITHOUT ROWID;
"""

Where = tuple[int, int]
"""The key ids of a work's cluster and of its binding."""


class Work(Struct, frozen=True, array_like=True, gc=False):
    """A work; (term, step) is its version, ``offset`` that of its template in the shard's partition of specs.

    ``number`` is that of the last record that changed the rendered work. ``applied`` is the cluster's report
    in the binding's status, None before the first; ``message`` is the reason why the work is not applied.
    """

    number: int
    template: shapes.WorkloadRef
    shard: int
    offset: int
    digest: str
    term: int
    step: int
    replicas: int | None
    suspended: bool = False
    uid: str = ""
    generation: int = 1
    created_ms: int = 0
    overrides: tuple[shapes.OverrideRef, ...] = ()
    labels: dict[str, str] = {}
    reading: shapes.Reading | None = None
    applied: bool | None = None
    message: str = ""


_encode = msgspec.json.Encoder(order="deterministic").encode
decode: Final = msgspec.json.Decoder(Work).decode


class Works:
    """Folds works."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._changed: dict[Where, Work | None] = {}
        self._new: dict[int, set[int]] = {}
        self._overridden: dict[str, dict[Where, bool]] = {}

    def take(
        self,
        where: Where,
        number: int,
        at_ms: int,
        head: Envelope,
        data: events.WorkApplied | events.WorkRemoved | events.WorkSuspended,
    ) -> None:
        """Fold a counted work; ``where`` are the key ids of its cluster and its binding.

        A work of an older version than the current one is ignored.
        """
        before = self.get(where)
        # Works of an older step may arrive late in the sequence; the newest version stays.
        if before is not None and (data.term, data.step) < (before.term, before.step):
            return
        match data:
            case events.WorkApplied():
                self._put(
                    where,
                    before,
                    Work(
                        number,
                        data.template,
                        data.shard,
                        data.offset,
                        data.digest,
                        data.term,
                        data.step,
                        data.replicas,
                        uid=before.uid if before else ids.object_uid(head.source, head.id, data.key),
                        generation=before.generation + 1 if before else 1,
                        created_ms=before.created_ms if before else at_ms,
                        overrides=data.overrides,
                        labels=data.labels,
                        reading=data.reading,
                        applied=before.applied if before else None,
                        message=before.message if before else "",
                    ),
                )
            case events.WorkRemoved():
                self._put(where, before, None)
            case events.WorkSuspended():
                if before is not None:
                    suspended = msgspec.structs.replace(
                        before, number=number, term=data.term, step=data.step, suspended=True
                    )
                    self._put(where, before, suspended)

    def report(self, where: Where, number: int, *, applied: bool | None, message: str) -> bool:
        """Store the cluster's report; return whether it changes the rendered work."""
        before = self.get(where)
        if before is None or (before.applied, before.message) == (applied, message):
            return False
        after = msgspec.structs.replace(before, number=number, applied=applied, message=message)
        self._put(where, before, after)
        return True

    def touch(self, where: Where, number: int) -> None:
        """Set the number of a work whose rendered content changed with its template or an override policy."""
        before = self.get(where)
        if before is not None:
            self._put(where, before, msgspec.structs.replace(before, number=number))

    def of_key(self, key_id: int) -> list[Where]:
        """Return the works of a binding."""
        rows = self._rows.select("SELECT cluster FROM works WHERE id = ?", (key_id,))
        found = {cluster for (cluster,) in rows} | self._new.get(key_id, set())
        return [where for cluster in sorted(found) if self.get(where := (cluster, key_id)) is not None]

    def overridden_by(self, kind: str, namespace: str, name: str) -> list[Where]:
        """Return the works to which an override policy applies."""
        policy = _policy(kind, namespace, name)
        rows = self._rows.select("SELECT cluster, id FROM overridden WHERE policy = ?", (policy,))
        found = dict.fromkeys(rows, True) | self._overridden.get(policy, {})
        return [where for where, is_overridden in sorted(found.items()) if is_overridden]

    def flush(self, rows: Rows) -> None:
        gone: list[Row] = []
        kept: list[Row] = []
        for where in sorted(self._changed):
            work = self._changed[where]
            if work is None:
                gone.append(where)
            else:
                kept.append((*where, _encode(work)))
        self._flush_overridden(rows)
        rows.write("DELETE FROM works WHERE cluster = ? AND id = ?", gone)
        rows.write("INSERT OR REPLACE INTO works VALUES (?, ?, ?)", kept)
        self._changed, self._new, self._overridden = {}, {}, {}

    def get(self, where: tuple[int, int]) -> Work | None:
        """Return the work including unwritten changes; None if there is none."""
        if where in self._changed:
            return self._changed[where]
        found = self._rows.select("SELECT body FROM works WHERE cluster = ? AND id = ?", where)
        return decode(found[0][0]) if found else None

    def _put(self, where: Where, before: Work | None, after: Work | None) -> None:
        self._changed[where] = after
        self._new.setdefault(where[1], set()).add(where[0])
        for ref in before.overrides if before is not None else ():
            self._overridden.setdefault(_policy(ref.kind, ref.namespace, ref.name), {})[where] = False
        for ref in after.overrides if after is not None else ():
            self._overridden.setdefault(_policy(ref.kind, ref.namespace, ref.name), {})[where] = True

    def _flush_overridden(self, rows: Rows) -> None:
        """Write the index of works by override policy."""
        gone: list[Row] = []
        kept: list[Row] = []
        for policy, its in sorted(self._overridden.items()):
            gone += [(policy, *where) for where in sorted(its) if not its[where]]
            kept += [(policy, *where) for where in sorted(its) if its[where]]
        rows.write("DELETE FROM overridden WHERE policy = ? AND cluster = ? AND id = ?", gone)
        rows.write("INSERT OR IGNORE INTO overridden VALUES (?, ?, ?)", kept)


def _policy(kind: str, namespace: str, name: str) -> str:
    return f"{kind} {namespace}/{name}"
