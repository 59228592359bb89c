"""The view of works: what each cluster must run now, by template."""

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
"""


class Work(Struct, frozen=True, array_like=True, gc=False):
    """A work; (term, step) is its version. ``offset`` in the shard's specs is where its template stands."""

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


_encode = msgspec.json.Encoder(order="deterministic").encode
decode: Final = msgspec.json.Decoder(Work).decode


class Works:
    """Takes in works."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._changed: dict[tuple[int, int], Work | None] = {}

    def take(
        self,
        where: tuple[int, int],
        number: int,
        at_ms: int,
        head: Envelope,
        data: events.WorkApplied | events.WorkRemoved | events.WorkSuspended,
    ) -> None:
        """Folds a work that counts; ``where`` are the numbers of its cluster and of its binding's key.

        One that is older than what stands has no effect.
        """
        before = self.get(where)
        if before is not None and (data.term, data.step) < (before.term, before.step):
            return
        match data:
            case events.WorkApplied():
                self._changed[where] = Work(
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
                )
            case events.WorkRemoved():
                self._changed[where] = None
            case events.WorkSuspended():
                if before is not None:
                    self._changed[where] = msgspec.structs.replace(
                        before, number=number, term=data.term, step=data.step, suspended=True
                    )

    def flush(self, rows: Rows) -> None:
        """See ``port.View``."""
        gone: list[Row] = []
        kept: list[Row] = []
        for where in sorted(self._changed):
            work = self._changed[where]
            if work is None:
                gone.append(where)
            else:
                kept.append((*where, _encode(work)))
        rows.write("DELETE FROM works WHERE cluster = ? AND id = ?", gone)
        rows.write("INSERT OR REPLACE INTO works VALUES (?, ?, ?)", kept)
        self._changed = {}

    def get(self, where: tuple[int, int]) -> Work | None:
        """The work as it stands, whether written or not."""
        if where in self._changed:
            return self._changed[where]
        found = self._rows.select("SELECT body FROM works WHERE cluster = ? AND id = ?", where)
        return decode(found[0][0]) if found else None
