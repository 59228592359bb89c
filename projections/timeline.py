"""Projection of timelines: the numbers of the records that touched each key; the records stay in the log.

``is_work`` is 1 for works, so that queries find them without reading the other records of a key.
"""

from typing import Final

from projections.port import Rows

SCHEMA: Final = """
CREATE TABLE timeline (
    id INTEGER NOT NULL, number INTEGER NOT NULL, is_work INTEGER NOT NULL, PRIMARY KEY (id, number)
) WITHOUT ROWID;
"""


class Timeline:
    def __init__(self) -> None:
        self._new: list[tuple[int, int, int]] = []

    def touch(self, key_id: int, number: int, *, is_work: bool = False) -> None:
        """Record that the record with this number touched the key."""
        self._new.append((key_id, number, int(is_work)))

    def flush(self, rows: Rows) -> None:
        # Sorted by primary key, which makes many inserts into a B-tree cheap. OR IGNORE: a record may touch a
        # key twice.
        rows.write("INSERT OR IGNORE INTO timeline VALUES (?, ?, ?)", sorted(self._new))
        self._new = []
