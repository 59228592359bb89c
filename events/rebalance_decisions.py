"""Topic ``decisions``: the decisions about a rebalancer."""

from events import keys, shapes, topics


class RebalancerDecision(shapes.Event, frozen=True, kw_only=True):
    """Base of the decisions about a rebalancer."""

    name: str
    uid: str

    @property
    def subject(self) -> str:
        return keys.rebalancer_key(self.name)


@shapes.recorded("rebalance-started", topics.DECISIONS)
class RebalanceStarted(RebalancerDecision, frozen=True, kw_only=True):
    """The start of a rebalancer's generation.

    ``asked`` are the workloads for which a fresh decision is requested now, ``dropped`` those removed from its list.
    """

    generation: shapes.Count
    at_ms: shapes.Instant
    asked: tuple[shapes.WorkloadRef, ...] = ()
    dropped: tuple[shapes.WorkloadRef, ...] = ()


@shapes.recorded("workload-rebalanced", topics.DECISIONS)
class WorkloadRebalanced(RebalancerDecision, frozen=True, kw_only=True):
    """The result for one workload of a rebalancer: Successful, or Failed with a reason."""

    generation: shapes.Count
    workload: shapes.WorkloadRef
    result: str
    reason: str = ""

    @property
    def related(self) -> tuple[str, ...]:
        return (self.workload.binding_key,)


@shapes.recorded("rebalance-finished", topics.DECISIONS)
class RebalanceFinished(RebalancerDecision, frozen=True, kw_only=True):
    """All workloads of this generation of the rebalancer have a result."""

    generation: shapes.Count
    finish_ms: shapes.Instant


@shapes.recorded("rebalancer-expired", topics.DECISIONS)
class RebalancerExpired(RebalancerDecision, frozen=True, kw_only=True):
    """The rebalancer's ``ttlSecondsAfterFinished`` has passed, which deletes it."""

    generation: shapes.Count
