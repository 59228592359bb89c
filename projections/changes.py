"""Projection of changes: the API objects that each record of the log changed; feeds watches.

Watches read the changes in sequence order and can continue at any number, also after a restart. One record may change
several objects: an aggregated status changes the binding and its template. For a deleted object the row holds its last
document; the documents of all others come from the other projections. Only the last ``CHANGES_MAX`` numbers of the log
are kept; a watch that is further behind must list everything again.
"""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from events import keys
from events.json_values import canonical_json
from events.kube_objects import KubeObject
from projections.port import Queryable, Row, Rows, Value

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
POSITIONS_PER_NUMBER: Final = 1 << 20
"""The primary key of a change is its record's number times this factor, plus its index among the record's changes.

A single integer key saves space: with it, SQLite keeps a document of up to a page in one piece. With a key of several
columns, SQLite would move the part of a document beyond a quarter of a page to a separate page, and more than half of
the table would be empty.
"""

ADDED: Final = 1
MODIFIED: Final = 2
DELETED: Final = 3

CLUSTER: Final = "Cluster.cluster.karmada.io"
RESOURCE_BINDING: Final = "ResourceBinding.work.karmada.io"
CLUSTER_RESOURCE_BINDING: Final = "ClusterResourceBinding.work.karmada.io"
WORK: Final = "Work.work.karmada.io"
REBALANCER: Final = "WorkloadRebalancer.apps.karmada.io"
STORED: Final = {WORK: "W", RESOURCE_BINDING: "B", CLUSTER_RESOURCE_BINDING: "b", CLUSTER: "C"}
"""Short names under which the table stores the kinds that change most; other kinds keep their names."""

_KINDS: Final = {stored: kind for kind, stored in STORED.items()}

IN_RANGE: Final = "SELECT id FROM changes WHERE place >= ? AND place < ? AND member = 0"
"""Selects the key ids of changed objects other than works; its parameters are the two results of ``bounds``."""

_OF_KINDS: Final = """
SELECT 1 FROM changes WHERE place >= ? AND place < ? AND kind IN (SELECT value FROM json_each(?)) LIMIT 1
"""


def kind_of(api_version: str, kind: str) -> str:
    """Return a kind with its group but no version: ``Deployment.apps``; a core kind ends with a dot."""
    return f"{kind}.{keys.group_of(api_version)}"


class DroppedError(Exception):
    """The table no longer has all changes that a caller needs."""


class Changes:
    """Collects changes and writes them to the table."""

    def __init__(self) -> None:
        self._new: dict[tuple[int, str, int, int], tuple[int, bytes | None]] = {}
        self._last = 0

    def touch(self, number: int, kind: str, key_id: int, *, added: bool = False, member: int = 0) -> None:
        """Record that an object or its derived content changed; ``member`` is the key id of a work's cluster."""
        self._new[number, kind, key_id, member] = (ADDED if added else MODIFIED, None)

    def remove(self, number: int, kind: str, key_id: int, last: KubeObject, *, member: int = 0) -> None:
        """Record that an object was removed; store its ``last`` document with the removal's resourceVersion."""
        removed = last.with_metadata({"resourceVersion": str(number)})
        self._new[number, kind, key_id, member] = (DELETED, canonical_json(removed.document))

    def note(self, number: int) -> None:
        """Store the number of a folded record, from which ``flush`` determines the old changes to delete."""
        self._last = number

    def flush(self, rows: Rows) -> None:
        new, self._new = self._new, {}
        rows_to_write: list[Row] = [
            (number * POSITIONS_PER_NUMBER + index, STORED.get(key[1], key[1]), *key[2:], *new[key])
            for number, changed in groupby(sorted(new), key=itemgetter(0))
            for index, key in enumerate(changed)
        ]
        rows.write("INSERT OR REPLACE INTO changes VALUES (?, ?, ?, ?, ?, ?)", rows_to_write)
        # A watch that still needs a deleted change gets a `DroppedError`.
        rows.write(
            "DELETE FROM changes WHERE place < ?", [((self._last - CHANGES_MAX + 1) * POSITIONS_PER_NUMBER,)]
        )


class Change(NamedTuple):
    """One change of an object; ``member`` is the key id of a work's cluster, 0 for other kinds.

    ``body`` is the last document of a deleted object, None otherwise.
    """

    number: int
    kind: str
    key_id: int
    member: int
    verb: int
    body: bytes | None


def checkpoint(rows: Queryable) -> int:
    """Return the number of the last record that the tables include."""
    return int(rows.select("SELECT number FROM checkpoint")[0][0])


def bounds(after: int, end: int) -> tuple[int, int]:
    """Return the range of primary keys, end exclusive, of the changes after number ``after`` up to number ``end``."""
    return (after + 1) * POSITIONS_PER_NUMBER, (end + 1) * POSITIONS_PER_NUMBER


def between(rows: Queryable, after: int, end: int, kind: str = "") -> list[Change]:
    """Return the changes after one number, up to and including another, in order; of one kind if it is set.

    Raises DroppedError if the table no longer has all of them.
    """
    # Check within the same read: after an earlier check by the caller, the fold could delete changes.
    if not is_kept(after, checkpoint(rows)):
        raise DroppedError(f"the changes after number {after} are no longer kept")
    statement = "SELECT place / ?, kind, id, member, verb, body FROM changes WHERE place >= ? AND place < ?"
    where: list[Value] = [POSITIONS_PER_NUMBER, *bounds(after, end)]
    if kind:
        statement += " AND kind = ?"
        where.append(STORED.get(kind, kind))
    selected = rows.select(f"{statement} ORDER BY place", where)
    return [Change(number, _kind(stored), *rest) for number, stored, *rest in selected]


def may_have_changed(rows: Queryable, kinds: Iterable[str], after: int, checkpoint: int) -> bool:
    """Whether an object of these kinds changed after a number; also True if the table no longer has all such changes.

    ``checkpoint`` is the last folded record's number.
    """
    if after < 0 or not is_kept(after, checkpoint):
        return True
    stored = msgspec.json.encode([STORED.get(kind, kind) for kind in kinds]).decode()
    return bool(rows.select(_OF_KINDS, (*bounds(after, checkpoint), stored)))


def _kind(stored: str) -> str:
    return _KINDS.get(stored, stored)


def is_kept(after: int, checkpoint: int) -> bool:
    """Whether the table still has all changes after a number; ``checkpoint`` is the last folded record's number."""
    return after >= checkpoint - CHANGES_MAX
