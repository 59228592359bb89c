"""Table of keys: each key that occurs in the log gets a small integer id, in order of first occurrence.

The other tables refer to keys by id, which keeps their rows small.
"""

from typing import Final

from projections.port import Row, Rows

SCHEMA: Final = "CREATE TABLE keys (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);"
_KNOWN_MAX: Final = 16_384


class Keys:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._last: int
        ((self._last,),) = rows.select("SELECT coalesce(max(id), 0) FROM keys")
        self._known: dict[str, int] = {}
        self._new: list[Row] = []

    def of(self, key: str) -> int:
        """Return the id of the key; assigns a new id at the first occurrence of the key."""
        key_id = self._known.get(key)
        if key_id is not None:
            return key_id
        rows = self._rows.select("SELECT id FROM keys WHERE key = ?", (key,))
        if rows:
            key_id = int(rows[0][0])
        else:
            self._last = key_id = self._last + 1
            self._new.append((key_id, key))
        self._known[key] = key_id
        return key_id

    def flush(self, rows: Rows) -> None:
        rows.write("INSERT INTO keys VALUES (?, ?)", self._new)
        self._new = []
        # `_known` is only a cache: the table has all keys once the batch is written.
        if len(self._known) > _KNOWN_MAX:
            self._known = {}
