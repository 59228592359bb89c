"""The view of changes: which objects, as people are shown them, each record of the log changed.

Those who watch read it in the order of numbers, and so go on anywhere, also after a restart. One record may change
several objects: what is aggregated shows on a binding and on its template. Of objects that are gone, the row keeps the
last that was shown of them; of all others the views know how they stand. Only the last ``CHANGES_MAX`` numbers of the
log are kept: who is further behind looks at everything again.
"""

from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from projections.port import Row, Rows, Value

CHANGES_MAX: Final = 100_000
SCHEMA: Final = """
CREATE TABLE changes (
    place INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    id INTEGER NOT NULL,
    member INTEGER NOT NULL,
    verb INTEGER NOT NULL,
    body BLOB
);
"""
PLACES: Final = 1 << 20
"""The place of a change is the number of its record times this, and which of the record's changes it is.

With an integer key, SQLite stores documents of up to a page beside each other. With a key of several columns it stores
the end of each document beyond a quarter of a page in a page of its own, and more than half of the table was empty.
"""

ADDED: Final = 1
MODIFIED: Final = 2
DELETED: Final = 3

CLUSTER: Final = "Cluster.cluster.karmada.io"
RESOURCE_BINDING: Final = "ResourceBinding.work.karmada.io"
CLUSTER_RESOURCE_BINDING: Final = "ClusterResourceBinding.work.karmada.io"
WORK: Final = "Work.work.karmada.io"
REBALANCER: Final = "WorkloadRebalancer.apps.karmada.io"

_encode = msgspec.json.Encoder(order="deterministic").encode


def kind_of(api_version: str, kind: str) -> str:
    """A kind with its group, whatever the version: ``Deployment.apps``; a dot ends the names of the core group."""
    group, slash, _version = api_version.partition("/")
    return f"{kind}.{group if slash else ''}"


class Changes:
    """Takes in what changed."""

    def __init__(self) -> None:
        self._new: dict[tuple[int, str, int, int], tuple[int, bytes | None]] = {}
        self._last = 0

    def touch(self, number: int, kind: str, key_id: int, *, added: bool = False, member: int = 0) -> None:
        """An object was written, or what is derived for it; ``member`` is the cluster of a work."""
        self._new[number, kind, key_id, member] = (ADDED if added else MODIFIED, None)

    def remove(self, number: int, kind: str, key_id: int, last: object, *, member: int = 0) -> None:
        """An object is gone; ``last`` is how it was shown."""
        self._new[number, kind, key_id, member] = (DELETED, _encode(last))

    def seen(self, number: int) -> None:
        """The record with this number was folded, whatever it changed."""
        self._last = number

    def flush(self, rows: Rows) -> None:
        """See ``port.View``."""
        new, self._new = self._new, {}
        kept: list[Row] = [
            (number * PLACES + place, *where[1:], *new[where])
            for number, changed in groupby(sorted(new), key=itemgetter(0))
            for place, where in enumerate(changed)
        ]
        rows.write("INSERT OR REPLACE INTO changes VALUES (?, ?, ?, ?, ?, ?)", kept)
        rows.write("DELETE FROM changes WHERE place < ?", [((self._last - CHANGES_MAX + 1) * PLACES,)])


class Change(NamedTuple):
    """One change: of which kind of object, where it stands, and what was last shown of it where it is gone."""

    number: int
    kind: str
    key_id: int
    member: int
    verb: int
    body: bytes | None


def between(rows: Rows, after: int, end: int, kind: str = "") -> list[Change]:
    """The changes behind one number, up to and with another, in their order; of one kind where it is named."""
    statement = "SELECT place / ?, kind, id, member, verb, body FROM changes WHERE place >= ? AND place < ?"
    where: list[Value] = [PLACES, (after + 1) * PLACES, (end + 1) * PLACES]
    if kind:
        statement += " AND kind = ?"
        where.append(kind)
    return [Change(*row) for row in rows.select(f"{statement} ORDER BY place", where)]


def is_kept(after: int, checkpoint: int) -> bool:
    """Whether all changes behind a number can still be told."""
    return after >= checkpoint - CHANGES_MAX
