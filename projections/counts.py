"""Projection of counts: records by type, inputs without effect by verdict, scheduling by trigger and failure reason."""

from typing import Final

from projections.port import Row, Rows

SCHEMA: Final = "CREATE TABLE counts (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;"
_UPSERT: Final = """
INSERT INTO counts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET count = count + excluded.count
"""


class Counts:
    def __init__(self) -> None:
        self._more: dict[str, int] = {}

    def add(self, name: str) -> None:
        self._more[name] = self._more.get(name, 0) + 1

    def flush(self, rows: Rows) -> None:
        more: list[Row] = list(self._more.items())
        rows.write(_UPSERT, more)
        self._more = {}
