"""The working set of a view: decoded documents by key, newest use last, written when a batch ends."""

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

_Document = TypeVar("_Document")

DOCUMENTS_MAX: Final = 32_768
"""Documents that stay decoded between batches; a batch may hold more until it ends."""


class WorkingSet(Generic[_Document]):
    """Documents by key id. ``load`` finds one that is not in memory; it gives None where there is none."""

    def __init__(self, load: Callable[[int], _Document | None], documents_max: int = DOCUMENTS_MAX) -> None:
        self._load = load
        self._max = documents_max
        self._documents: dict[int, _Document | None] = {}
        self._changed: dict[int, _Document | None] = {}

    def get(self, key_id: int) -> _Document | None:
        """The document as it is now, whether written or not."""
        if key_id in self._changed:
            return self._changed[key_id]
        # Taken out and put in again: the order of the dict is that of use.
        document = self._documents.pop(key_id) if key_id in self._documents else self._load(key_id)
        self._documents[key_id] = document
        return document

    def put(self, key_id: int, document: _Document | None) -> None:
        """The document that is to be written at the end of the batch; None deletes it."""
        self._changed[key_id] = document

    def changed(self) -> Iterator[tuple[int, _Document | None]]:
        """What is to be written now, in the order of key ids; afterwards it counts as written."""
        changed, self._changed = self._changed, {}
        for key_id in sorted(changed):
            document = changed[key_id]
            self._documents.pop(key_id, None)
            self._documents[key_id] = document
            yield key_id, document
        while len(self._documents) > self._max:
            del self._documents[next(iter(self._documents))]
