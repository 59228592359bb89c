"""The view of counts: how many inputs took effect or did not, and how many decisions there were of each sort."""

from typing import Final

from projections.port import Row, Rows

SCHEMA: Final = "CREATE TABLE counts (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;"
_UPSERT: Final = """
INSERT INTO counts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count
"""


class Counts:
    """Counts by name."""

    def __init__(self) -> None:
        self._more: dict[str, int] = {}

    def add(self, name: str) -> None:
        """One more of these."""
        self._more[name] = self._more.get(name, 0) + 1

    def flush(self, rows: Rows) -> None:
        """See ``port.View``."""
        more: list[Row] = list(self._more.items())
        rows.write(_UPSERT, more)
        self._more = {}
