"""The table of keys: each key that the log ever named gets a small number, in the order of its appearance.

Views refer to keys by that number, which keeps their rows narrow and their tables in one tree each.
"""

from typing import Final

from projections.port import Row, Rows

SCHEMA: Final = "CREATE TABLE keys (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);"
_KNOWN_MAX: Final = 131_072


class Keys:
    """Numbers keys."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._last: int
        ((self._last,),) = rows.select("SELECT coalesce(max(id), 0) FROM keys")
        self._known: dict[str, int] = {}
        self._new: list[Row] = []

    def of(self, key: str) -> int:
        """The number of the key; a new one where it was never named."""
        known = self._known.get(key)
        if known is not None:
            return known
        found = self._rows.select("SELECT id FROM keys WHERE key = ?", (key,))
        if found:
            known = int(found[0][0])
        else:
            self._last = known = self._last + 1
            self._new.append((known, key))
        self._known[key] = known
        return known

    def flush(self, rows: Rows) -> None:
        """See ``port.View``."""
        rows.write("INSERT INTO keys VALUES (?, ?)", self._new)
        self._new = []
        if len(self._known) > _KNOWN_MAX:
            self._known = {}
