"""Documents of one table by key: loaded when needed, written at the end of a batch, evicted when not used."""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from events.json_values import canonical_json
from projections.port import Row, Rows

_Key = TypeVar("_Key", int, tuple[int, int])
_Document = TypeVar("_Document")

DOCUMENTS_MAX: Final = 4_096
"""Maximum number of documents that stay in memory between batches; during a batch there may be more.

A document takes 2 kB. Decisions about a key follow one another closely, so few of them find its document evicted.
"""


class WorkingSet(Generic[_Key, _Document]):
    """Documents of a table whose last column is ``body``.

    ``key`` names the first columns, the primary key, which has one or two key ids. ``decode`` reads a body; ``columns``
    returns the values of the columns between key and body.
    """

    def __init__(
        self,
        rows: Rows,
        table: str,
        decode: Callable[[bytes], _Document],
        columns: Callable[[_Document], Row],
        key: tuple[str, ...] = ("id",),
    ) -> None:
        self._rows = rows
        self._table = table
        where = " AND ".join(f"{column} = ?" for column in key)
        # The interpolated names are constants.
        self._select = f"SELECT body FROM {table} WHERE {where}"  # noqa: S608
        self._delete = f"DELETE FROM {table} WHERE {where}"  # noqa: S608
        self._decode = decode
        self._columns = columns
        self._documents: dict[_Key, _Document | None] = {}
        self._changed: dict[_Key, _Document | None] = {}

    def get(self, key: _Key) -> _Document | None:
        """Return the document including unwritten changes; None if there is none.

        Do not modify it, unless you then ``put`` it.
        """
        if key in self._changed:
            return self._changed[key]
        # Insert again, so that the dict is ordered by last use.
        document = self._documents.pop(key) if key in self._documents else self._load(key)
        self._documents[key] = document
        return document

    def put(self, key: _Key, document: _Document | None) -> None:
        """Set the document to write at the end of the batch; None deletes it."""
        self._changed[key] = document

    def unwritten(self) -> Iterable[tuple[_Key, _Document | None]]:
        """Return the documents that were put since the last ``flush``, with their keys; None for a deleted document."""
        return self._changed.items()

    def flush(self, rows: Rows) -> None:
        """Write the changed documents in order of their keys; evict the least recently used ones beyond the maximum."""
        changed, self._changed = self._changed, {}
        deleted: list[Row] = []
        stored: list[Row] = []
        for key in sorted(changed):
            document = changed[key]
            self._documents.pop(key, None)
            self._documents[key] = document
            if document is None:
                deleted.append(_values(key))
            else:
                stored.append((*_values(key), *self._columns(document), canonical_json(document)))
        rows.write(self._delete, deleted)
        if stored:
            values = ", ".join("?" * len(stored[0]))
            rows.write(f"INSERT OR REPLACE INTO {self._table} VALUES ({values})", stored)  # noqa: S608  # a constant
        while len(self._documents) > DOCUMENTS_MAX:
            del self._documents[next(iter(self._documents))]

    def _load(self, key: _Key) -> _Document | None:
        rows = self._rows.select(self._select, _values(key))
        return self._decode(rows[0][0]) if rows else None


def _values(key: int | tuple[int, int]) -> tuple[int, ...]:
    return key if isinstance(key, tuple) else (key,)
