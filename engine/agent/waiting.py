"""Keys that wait for their turn, each once, some not before a time: level-triggered work for several workers."""

import heapq
import itertools

import anyio


class Waiting:
    """A queue of keys. A key that is being worked on and comes again is handed out again when that is done."""

    def __init__(self) -> None:
        self._ready: dict[str, None] = {}
        self._running: set[str] = set()
        self._again: set[str] = set()
        self._later: list[tuple[float, int, str]] = []
        self._due: dict[str, float] = {}
        self._order = itertools.count()
        self._more = anyio.Event()

    def put(self, key: str) -> None:
        """The key is to be worked on, now."""
        if key in self._running:
            self._again.add(key)
        else:
            self._ready[key] = None
        self._more.set()

    def put_later(self, key: str, seconds: float) -> None:
        """The key is to be worked on again, not before so many seconds have passed; the soonest time counts."""
        due = anyio.current_time() + seconds
        if due >= self._due.get(key, due + 1.0):
            return
        self._due[key] = due
        heapq.heappush(self._later, (due, next(self._order), key))
        self._more.set()

    async def take(self) -> str:
        """The next key; give it back with ``done``."""
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
        """The key was worked on."""
        self._running.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.put(key)
