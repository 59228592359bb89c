"""When time alone changes members: the next time of each."""

import heapq
from collections.abc import Iterator


class DueTimes:
    """Times in milliseconds by member; a member may be due too early, never too late."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._newest: dict[str, int] = {}

    def next_ms(self) -> int | None:
        """Return the earliest time; None for never."""
        return self._heap[0][0] if self._heap else None

    def set(self, member: str, due_ms: int | None) -> None:
        """Set the time of a member's next change; do nothing if it is None."""
        if due_ms is not None and due_ms != self._newest.get(member):
            self._newest[member] = due_ms
            heapq.heappush(self._heap, (due_ms, member))

    def pop(self, now_ms: int) -> Iterator[str]:
        """Remove and yield the members that are due."""
        while self._heap and self._heap[0][0] <= now_ms:
            _, member = heapq.heappop(self._heap)
            self._newest.pop(member, None)
            yield member
