"""A queue of keys for several workers; each key is in it at most once, and may be queued with a delay."""

import heapq
import itertools
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

import anyio

_Key = TypeVar("_Key", bound=Hashable)


class KeyQueue(Generic[_Key]):
    """A queue of keys. A key that is queued while a worker processes it is processed again afterwards."""

    # Two workers never process the same key at once: actions of one binding must not overlap.
    def __init__(self) -> None:
        # A plain dict takes longer to find its first key the more keys were removed before it.
        self._ready = OrderedDict[_Key, None]()
        self._running: set[_Key] = set()
        self._requeued: set[_Key] = set()
        self._later: list[tuple[float, int, _Key]] = []
        self._due: dict[_Key, float] = {}
        self._order = itertools.count()
        self._more = anyio.Event()

    def put(self, key: _Key) -> None:
        if key in self._running:
            self._requeued.add(key)
        else:
            self._ready[key] = None
        self._more.set()

    def put_later(self, key: _Key, seconds: float) -> None:
        """Queue a key after a delay; do nothing if it is due earlier already."""
        due = anyio.current_time() + seconds
        if due >= self._due.get(key, due + 1.0):
            return
        self._due[key] = due
        heapq.heappush(self._later, (due, next(self._order), key))
        self._more.set()

    async def take(self) -> _Key:
        """Wait for the next key; call ``done`` when it is processed."""
        while True:
            now = anyio.current_time()
            while self._later and self._later[0][0] <= now:
                due, _, key = heapq.heappop(self._later)
                if self._due.get(key) == due:
                    del self._due[key]
                    self.put(key)
            if self._ready:
                key, _ = self._ready.popitem(last=False)
                self._running.add(key)
                return key
            if self._more.is_set():
                self._more = anyio.Event()
            with anyio.move_on_after(self._later[0][0] - now if self._later else None):
                await self._more.wait()

    def done(self, key: _Key) -> None:
        """Mark a key as processed."""
        self._running.discard(key)
        if key in self._requeued:
            self._requeued.discard(key)
            self.put(key)
