"""What an explanation says of priority and preemption: who makes room for a binding, and for whom it made some.

It is folded from the decisions of the binding's own shard, up to the moment that is asked for.
"""

import msgspec
from msgspec import Struct

from events import decisions, shapes, times

_SECOND_MS = 1_000


class Priority(Struct, frozen=True, rename="camel"):
    """How important the binding is, by which class; with the policy Never nobody has to make room for it."""

    value: int
    class_name: str
    preemption_policy: str
    fault: str = ""


class Victim(Struct, frozen=True, rename="camel"):
    """Who was told to leave a cluster, with so many replicas."""

    key: str
    cluster: str
    replicas: int
    priority: int


class Preemption(Struct, frozen=True, rename="camel"):
    """The last time that the binding found no room: how many replicas, where, and who was to make some.

    ``victims`` are those of all attempts at this room. ``reason`` is why the last attempt chose nobody; ``is_answered``
    that all shards have answered. ``again_at`` is when it may ask again at the earliest, if it fails again.
    """

    missing: int
    clusters: tuple[str, ...]
    asked_at: str
    attempt: int
    again_at: str
    is_answered: bool = False
    victims: tuple[Victim, ...] = ()
    reason: str = ""


class Preempted(Struct, frozen=True, rename="camel"):
    """For whom the binding left a cluster, with so many replicas; it stays out ``until`` then, if it still does."""

    by: str
    replicas: int
    at: str
    until: str = ""


class Room(Struct):
    """All of it; ``by_cluster`` has the clusters that the binding left and did not come back to."""

    priority: Priority | None = None
    preemption: Preemption | None = None
    by_cluster: dict[str, Preempted] = {}
    is_placed: bool = False
    """Whether the binding was placed since it found no room: the next decision is another story."""

    def take(self, data: shapes.Event, time_ms: int) -> None:
        """Takes in a decision on the binding, of a step at this time."""
        match data:
            case decisions.PriorityResolved(priority=value):
                self.priority = (
                    None
                    if value is None
                    else Priority(value, data.class_name, data.preemption_policy, data.fault)
                )
            case decisions.RoomWanted():
                self._want(data, time_ms)
            case decisions.PreemptionDecided():
                self._choose(data)
            case decisions.ScheduleDecided():
                self._place(data)
            case decisions.EvictionStarted() | decisions.EvictionFinished():
                self._leave(data)
            case decisions.BindingWithdrawn():
                self.priority = self.preemption = None
                self.by_cluster = {}
            case _:
                pass

    def _want(self, wanted: decisions.RoomWanted, time_ms: int) -> None:
        former = self.preemption if wanted.attempt > 1 else None
        self.is_placed = False
        self.preemption = Preemption(
            missing=wanted.missing,
            clusters=wanted.clusters,
            asked_at=times.to_text(time_ms),
            attempt=wanted.attempt,
            again_at=times.to_text(wanted.again_ms),
            victims=former.victims if former else (),
        )

    def _choose(self, decided: decisions.PreemptionDecided) -> None:
        if self.preemption is None:
            return
        chosen = (Victim(each.key, each.cluster, each.replicas, each.priority) for each in decided.victims)
        self.preemption = msgspec.structs.replace(
            self.preemption,
            is_answered=True,
            victims=(*self.preemption.victims, *chosen),
            reason=decided.reason,
            again_at=times.to_text(decided.again_ms),
        )

    def _place(self, decided: decisions.ScheduleDecided) -> None:
        if self.is_placed:
            self.preemption = None
        self.is_placed = True
        if decided.mode == "Fresh":
            self.by_cluster = {}
        for target in decided.clusters:
            self.by_cluster.pop(target.name, None)

    def _leave(self, data: decisions.EvictionStarted | decisions.EvictionFinished) -> None:
        match data:
            case decisions.EvictionStarted(cluster=cluster, by=by) if by:
                until_ms = data.created_ms + (data.grace_period_seconds or 0) * _SECOND_MS
                self.by_cluster[cluster] = Preempted(
                    by=by,
                    replicas=data.replicas,
                    at=times.to_text(data.created_ms),
                    until=times.to_text(until_ms) if data.held else "",
                )
            case decisions.EvictionFinished(cluster=cluster) if cluster in self.by_cluster:
                self.by_cluster[cluster] = msgspec.structs.replace(self.by_cluster[cluster], until="")
            case _:
                pass
