"""The progress of a WorkloadRebalancer and the result for each workload; only ``apply`` changes them."""

from msgspec import Struct

from events import rebalance_decisions, shapes


class Observed(Struct, frozen=True, array_like=True, gc=False):
    """A workload and the result of rescheduling it; ``result`` is empty until it is recorded.

    ``generation`` is the rebalancer's generation at the time of the request to reschedule the workload.
    """

    workload: shapes.WorkloadRef
    generation: int
    result: str = ""
    reason: str = ""


class Rebalancer(Struct):
    """Progress of a rebalancer, as decisions record it.

    ``started`` and ``finished`` are the generations that were last started and finished, ``finish_ms`` is the time of
    the last finish; all are 0 before the first. ``observed`` has the results by the sort key of the workload.
    """

    started: int = 0
    finished: int = 0
    finish_ms: int = 0
    expired: bool = False
    observed: dict[str, Observed] = {}


def apply(rebalancer: Rebalancer, data: rebalance_decisions.RebalancerDecision) -> None:
    """Apply a decision about the rebalancer."""
    match data:
        case rebalance_decisions.RebalanceStarted():
            rebalancer.started = data.generation
            for ref in data.dropped:
                rebalancer.observed.pop(ref.sort_key, None)
            for ref in data.asked:
                rebalancer.observed[ref.sort_key] = Observed(ref, data.generation)
        case rebalance_decisions.WorkloadRebalanced(workload=ref):
            rebalancer.observed[ref.sort_key] = Observed(ref, data.generation, data.result, data.reason)
        case rebalance_decisions.RebalanceFinished():
            rebalancer.finished, rebalancer.finish_ms = data.generation, data.finish_ms
        case rebalance_decisions.RebalancerExpired():
            rebalancer.expired = True
        case _:
            return
