"""Projection of timelines: the numbers of the records that touched each key; the records stay in the log."""

from typing import Final

from projections.port import Rows

SCHEMA: Final = """
CREATE TABLE timeline (id INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (id, number)) WITHOUT ROWID;
"""


class Timeline:
    def __init__(self) -> None:
        self._new: list[tuple[int, int]] = []

    def touch(self, key_id: int, number: int) -> None:
        """Record that the record with this number touched the key."""
        self._new.append((key_id, number))

    def flush(self, rows: Rows) -> None:
        # Sorted by primary key, which makes many inserts into a B-tree cheap. OR IGNORE: a record may touch a
        # key twice.
        rows.write("INSERT OR IGNORE INTO timeline VALUES (?, ?)", sorted(self._new))
        self._new = []
