"""The view of works: what each cluster must run now, by template."""

from typing import Final

import msgspec
from msgspec import Struct

from events import shapes
from events import works as events
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


_encode = msgspec.json.Encoder(order="deterministic").encode
decode: Final = msgspec.json.Decoder(Work).decode


class Works:
    """Takes in works."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._changed: dict[tuple[int, int], Work | None] = {}

    def take(self, cluster_id: int, key_id: int, number: int, data: shapes.Event) -> None:
        """Folds a work that counts."""
        where = (cluster_id, key_id)
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
                )
            case events.WorkRemoved():
                self._changed[where] = None
            case events.WorkSuspended():
                work = self._get(where)
                if work is not None:
                    self._changed[where] = msgspec.structs.replace(
                        work, number=number, term=data.term, step=data.step, suspended=True
                    )
            case _:
                return

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

    def _get(self, where: tuple[int, int]) -> Work | None:
        if where in self._changed:
            return self._changed[where]
        found = self._rows.select("SELECT body FROM works WHERE cluster = ? AND id = ?", where)
        return decode(found[0][0]) if found else None
