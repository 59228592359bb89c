"""Priority and preemption in an explanation: bindings that this binding preempts, and preemptions of it.

The decisions of the binding's own shard, up to the requested position, are folded into a ``History``.
"""

import msgspec
from msgspec import Struct

from engine.reconcilers.explanation_types import Preempted, Preemption, Priority, Victim
from events import decisions, preemption_decisions, shapes, times


class History(Struct):
    """Priority and preemption of one binding.

    ``by_cluster`` holds the clusters from which the binding was preempted and to which it has not returned.
    """

    priority: Priority | None = None
    preemption: Preemption | None = None
    by_cluster: dict[str, Preempted] = {}
    is_placed: bool = False
    """Whether the binding was scheduled successfully after its last capacity request.

    If so, the next successful decision removes the request from the explanation.
    """

    def take(self, data: shapes.Event, time_ms: int) -> None:
        """Fold a decision on the binding, made in a step at ``time_ms``."""
        match data:
            case decisions.PriorityResolved(priority=value):
                self.priority = (
                    None
                    if value is None
                    else Priority(value, data.class_name, data.preemption_policy, data.fault)
                )
            case preemption_decisions.CapacityWanted():
                self._apply_request(data, time_ms)
            case preemption_decisions.PreemptionDecided():
                self._apply_victims(data)
            case decisions.ScheduleDecided():
                self._apply_decision(data)
            case decisions.EvictionStarted() | decisions.EvictionFinished():
                self._apply_eviction(data)
            case decisions.BindingWithdrawn():
                self.priority = self.preemption = None
                self.by_cluster = {}
            case _:
                pass

    def _apply_request(self, request: preemption_decisions.CapacityWanted, time_ms: int) -> None:
        previous = self.preemption if request.attempt > 1 else None
        self.is_placed = False
        self.preemption = Preemption(
            missing=request.missing,
            clusters=request.clusters,
            asked_at=times.to_text(time_ms),
            attempt=request.attempt,
            again_at=times.to_text(request.again_ms),
            victims=previous.victims if previous else (),
        )

    def _apply_victims(self, decided: preemption_decisions.PreemptionDecided) -> None:
        if self.preemption is None:
            return
        chosen = (
            Victim(victim.key, victim.cluster, victim.replicas, victim.priority) for victim in decided.victims
        )
        self.preemption = msgspec.structs.replace(
            self.preemption,
            is_answered=True,
            victims=(*self.preemption.victims, *chosen),
            reason=decided.reason,
            again_at=times.to_text(decided.again_ms),
        )

    def _apply_decision(self, decided: decisions.ScheduleDecided) -> None:
        if self.is_placed:
            self.preemption = None
        self.is_placed = True
        if decided.mode == "Fresh":
            self.by_cluster = {}
        for target in decided.clusters:
            self.by_cluster.pop(target.name, None)

    def _apply_eviction(self, data: decisions.EvictionStarted | decisions.EvictionFinished) -> None:
        match data:
            case decisions.EvictionStarted(cluster=cluster, by=by) if by:
                until_ms = data.created_ms + (data.grace_period_seconds or 0) * times.SECOND_MS
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
