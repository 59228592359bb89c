"""Documents of one table by key id: loaded when needed, written at the end of a batch, evicted when not used."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from events.json_values import canonical_json
from projections.port import Row, Rows

_Document = TypeVar("_Document")

DOCUMENTS_MAX: Final = 4_096
"""Maximum number of documents that stay in memory between batches; during a batch there may be more.

A document takes 2 kB. Most decisions about a key follow each other closely; later ones load its document again.
"""


class WorkingSet(Generic[_Document]):
    """Documents of a table whose first column is ``id`` and whose last one is ``body``.

    ``decode`` reads a body; ``columns`` returns the values of the columns between these two.
    """

    def __init__(
        self,
        rows: Rows,
        table: str,
        decode: Callable[[bytes], _Document],
        columns: Callable[[_Document], Row],
    ) -> None:
        self._rows = rows
        self._table = table
        self._decode = decode
        self._columns = columns
        self._documents: dict[int, _Document | None] = {}
        self._changed: dict[int, _Document | None] = {}

    def get(self, key_id: int) -> _Document | None:
        """Return the document including unwritten changes; None if there is none.

        Do not modify it, unless you then ``put`` it.
        """
        if key_id in self._changed:
            return self._changed[key_id]
        # Reinserted, so that the order of the dict is the order of last use.
        document = self._documents.pop(key_id) if key_id in self._documents else self._load(key_id)
        self._documents[key_id] = document
        return document

    def put(self, key_id: int, document: _Document | None) -> None:
        """Set the document to write at the end of the batch; None deletes it."""
        self._changed[key_id] = document

    def flush(self, rows: Rows) -> None:
        """Write the changed documents in order of key ids; evict the least recently used ones beyond the maximum."""
        changed, self._changed = self._changed, {}
        deleted: list[Row] = []
        stored: list[Row] = []
        for key_id in sorted(changed):
            document = changed[key_id]
            self._documents.pop(key_id, None)
            self._documents[key_id] = document
            if document is None:
                deleted.append((key_id,))
            else:
                stored.append((key_id, *self._columns(document), canonical_json(document)))
        rows.write(f"DELETE FROM {self._table} WHERE id = ?", deleted)  # noqa: S608  # a constant
        if stored:
            values = ", ".join("?" * len(stored[0]))
            rows.write(f"INSERT OR REPLACE INTO {self._table} VALUES ({values})", stored)  # noqa: S608  # a constant
        while len(self._documents) > DOCUMENTS_MAX:
            del self._documents[next(iter(self._documents))]

    def _load(self, key_id: int) -> _Document | None:
        rows = self._rows.select(f"SELECT body FROM {self._table} WHERE id = ?", (key_id,))  # noqa: S608  # a constant
        return self._decode(rows[0][0]) if rows else None
