"""A queue of keys for several workers; each key is in it at most once, and may be queued with a delay."""

import heapq
import itertools

import anyio


class Waiting:
    """A queue of keys. A key that is queued while a worker processes it is processed again afterwards."""

    # Two workers never process the same key at once: actions of one binding must not overlap.
    def __init__(self) -> None:
        self._ready: dict[str, None] = {}
        self._running: set[str] = set()
        self._requeued: set[str] = set()
        self._later: list[tuple[float, int, str]] = []
        self._due: dict[str, float] = {}
        self._order = itertools.count()
        self._more = anyio.Event()

    def put(self, key: str) -> None:
        if key in self._running:
            self._requeued.add(key)
        else:
            self._ready[key] = None
        self._more.set()

    def put_later(self, key: str, seconds: float) -> None:
        """Queue a key after a delay; do nothing if it is due earlier already."""
        due = anyio.current_time() + seconds
        if due >= self._due.get(key, due + 1.0):
            return
        self._due[key] = due
        heapq.heappush(self._later, (due, next(self._order), key))
        self._more.set()

    async def take(self) -> str:
        """Wait for the next key; call ``done`` when it is processed."""
        while True:
            now = anyio.current_time()
            while self._later and self._later[0][0] <= now:
                due, _, key = heapq.heappop(self._later)
                if self._due.get(key) == due:
                    del self._due[key]
                    self.put(key)
            if self._ready:
                key = next(iter(self._ready))
                del self._ready[key]
                self._running.add(key)
                return key
            if self._more.is_set():
                self._more = anyio.Event()
            with anyio.move_on_after(self._later[0][0] - now if self._later else None):
                await self._more.wait()

    def done(self, key: str) -> None:
        """Mark a key as processed."""
        self._running.discard(key)
        if key in self._requeued:
            self._requeued.discard(key)
            self.put(key)
