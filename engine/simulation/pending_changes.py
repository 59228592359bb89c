"""Pending changes of members: timers that are not due, and clients' writes that follow works not yet applied."""

import heapq
from collections import deque
from collections.abc import Iterator, Mapping

from engine.log import port
from engine.simulation import cluster, unmanaged
from engine.simulation.member_history import ObjectWrite
from engine.simulation.state import MemberState
from events import clusters, keys, topics


class DueTimes:
    """Times (in milliseconds) of the members' next changes without an input; possibly too early, never too late."""

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


class ClientWrites:
    """Writes of the members' clients, by member, which wait until the works before them in the log are applied.

    A rebuild from the log applies works and writes in the same order, so it comes to the same state.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[ObjectWrite]] = {}

    def __contains__(self, member: str) -> bool:
        return member in self._waiting

    def add(self, member: str, write: ObjectWrite) -> None:
        self._waiting.setdefault(member, deque()).append(write)

    def settled(self, applied: Mapping[int, int], ends: port.Ends) -> list[str]:
        """Return the members that have pending writes and have applied all works below ``ends``.

        ``applied`` has, by partition of works, the offset after the last applied one.
        """
        return [
            member
            for member in self._waiting
            if applied[keys.shard_of(member)] >= ends.get((topics.WORKS, keys.shard_of(member)), 0)
        ]

    def carry_out(self, state: MemberState, before: int) -> bool:
        """Carry out the member's writes with record numbers below ``before``; return whether there were any."""
        member = state.spec.name
        writes = self._waiting.get(member)
        if writes is None or writes[0].number >= before:
            return False
        while writes and writes[0].number < before:
            _carry_out(state, writes.popleft())
        if not writes:
            del self._waiting[member]
        return True


def _carry_out(state: MemberState, write: ObjectWrite) -> None:
    match write.data:
        case clusters.MemberObjectApplied(manifest=manifest):
            unmanaged.apply(state, bytes(manifest), write.uid, write.at_ms)
        case clusters.MemberObjectDeleted() as deletion:
            cluster.delete_object(state, deletion, write.at_ms)
        case clusters.MemberPodDeleted(owner=owner, slot=slot):
            cluster.delete_pod(state, owner, slot, write.at_ms)
