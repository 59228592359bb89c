"""When namespaces changed last, for the feeds of all agents: one query of the views per advance of the views."""

from typing import Final

import anyio

from engine.domain import namespaces
from engine.http.query.view_reads import Reader
from engine.http.services import Services
from projections import changes

_KIND: Final = changes.kind_of(*namespaces.KIND)


class NamespaceChanges:
    """The number of the last change of a namespace; after a start, an upper bound."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._reader = Reader(services)
        self._lock = anyio.Lock()
        self._seen = -1
        self._last = 0

    async def last(self) -> int:
        """Return the number of the last change, as far as the views know."""
        async with self._lock:
            folded = self._services.views.folded
            if self._seen < 0 or not changes.is_kept(self._seen, folded):
                self._last = folded
            elif folded > self._seen:
                start = self._seen
                changed = await self._reader.peek(lambda rows: changes.between(rows, start, folded, _KIND))
                self._last = changed[-1].number if changed else self._last
            self._seen = folded
        return self._last
