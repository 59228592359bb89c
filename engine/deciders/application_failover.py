"""Application failover: evict a workload from a cluster in which it has been unhealthy for too long.

Rules and messages are Karmada's. A policy enables application failover, each cluster is assessed by itself, and the
evicted replicas are scheduled elsewhere while the eviction continues. The tolerated time starts with the first step
that finds the workload unhealthy in the cluster; it starts again after a healthy report or the end of an eviction.
"""

from collections.abc import Iterator
from typing import Final

from engine.deciders import state_preservation
from engine.deciders.state import Binding
from engine.deciders.step_outputs import Outputs, View
from events import decisions, times, vocabulary

_REASON: Final = "ApplicationFailure"
_PRODUCER: Final = "resource-binding-application-failover-controller"
_PRODUCER_OF_CLUSTER_SCOPED: Final = "cluster-resource-binding-application-failover-controller"


def decide(binding: Binding, view: View) -> Outputs[None]:
    """Start the evictions that are due."""
    failover = binding.claim.failover if binding.claim else None
    if failover is None:
        return
    mode, rules = failover.purge_mode, failover.preserved
    evictions = [
        decisions.EvictionStarted(
            key=binding.key,
            cluster=cluster,
            reason=_REASON,
            producer=_PRODUCER if "/" in binding.key else _PRODUCER_OF_CLUSTER_SCOPED,
            purge_mode=mode,
            created_ms=view.time_ms,
            grace_period_seconds=failover.grace_period_seconds
            if mode == vocabulary.PURGE_GRACEFULLY
            else None,
            suppress_deletion=True if mode == vocabulary.PURGE_NEVER else None,
        )
        for cluster, deadline_ms in _deadlines(binding, failover)
        if deadline_ms <= view.time_ms
    ]
    # Read all states before emitting the first eviction: each eviction removes its cluster from the binding.
    yield from [state_preservation.with_state(started, binding, rules) for started in evictions]


def due_ms(binding: Binding) -> int:
    """Return the next time at which an unhealthy workload is to be evicted; 0 for never."""
    failover = binding.claim.failover if binding.claim else None
    if failover is None:
        return 0
    return min((deadline_ms for _, deadline_ms in _deadlines(binding, failover)), default=0)


def _deadlines(binding: Binding, failover: decisions.ApplicationFailover) -> Iterator[tuple[str, int]]:
    """Yield each cluster in which the workload is unhealthy, with the time of its eviction."""
    for name, _ in binding.clusters:
        report = binding.reports.get(name)
        if report is not None and report.unhealthy_ms:
            yield name, report.unhealthy_ms + failover.toleration_seconds * times.SECOND_MS
