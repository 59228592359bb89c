"""Working set of a projection: decoded documents, written at the end of a batch; evicts the least recently used."""

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

_Document = TypeVar("_Document")

DOCUMENTS_MAX: Final = 4_096
"""Maximum number of documents that stay in memory between batches; during a batch there may be more.

A document takes 2 kB. Most decisions about a key follow each other closely; later ones load its document again.
"""


class WorkingSet(Generic[_Document]):
    """Documents by key id; ``load`` returns a document that is not in memory, None if it does not exist."""

    def __init__(self, load: Callable[[int], _Document | None], documents_max: int = DOCUMENTS_MAX) -> None:
        self._load = load
        self._max = documents_max
        self._documents: dict[int, _Document | None] = {}
        self._changed: dict[int, _Document | None] = {}

    def get(self, key_id: int) -> _Document | None:
        """Return the document including unwritten changes.

        Callers may modify it in place only if they then ``put`` it.
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

    def changed(self) -> Iterator[tuple[int, _Document | None]]:
        """Yield the documents to write, in order of key ids, and mark them as written."""
        changed, self._changed = self._changed, {}
        for key_id in sorted(changed):
            document = changed[key_id]
            self._documents.pop(key_id, None)
            self._documents[key_id] = document
            yield key_id, document
        while len(self._documents) > self._max:
            del self._documents[next(iter(self._documents))]
