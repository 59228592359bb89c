"""The view of timelines: which records of the log touched a key. The records themselves stay in the log."""

from typing import Final

from projections.port import Rows

SCHEMA: Final = """
CREATE TABLE timeline (id INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (id, number)) WITHOUT ROWID;
"""


class Timeline:
    """Takes in which keys a record touched."""

    def __init__(self) -> None:
        self._new: list[tuple[int, int]] = []

    def touch(self, key_id: int, number: int) -> None:
        """The record with this number touched the key."""
        self._new.append((key_id, number))

    def flush(self, rows: Rows) -> None:
        """See ``port.View``."""
        # In the order of the tree, which is what makes many inserts cheap.
        rows.write("INSERT OR IGNORE INTO timeline VALUES (?, ?)", sorted(self._new))
        self._new = []
