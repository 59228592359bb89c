"""Checker of retries: in a stable world no workload that a scheduling pass would place now is without a cluster.

Bindings that are suspended, that another scheduler places, or that wait for a quota, a group or the time of their next
attempt are left out.
"""

from collections.abc import Iterator
from typing import Final

from engine.deciders import scheduling
from engine.deciders.shard_fold import ShardFold
from engine.deciders.state import Binding
from engine.placement import schedule
from engine.placement.decisions import SUCCESS
from tests.simulation.world import World

_QUOTA_EXCEEDED: Final = "QuotaExceeded"


def check(played: World) -> Iterator[str]:
    """Yield the bindings that a scheduling pass would place."""
    for fold in played.worker.folds:
        for key, binding in fold.state.bindings.items():
            if not binding.clusters and binding.condition != _QUOTA_EXCEEDED and not fold.state.awaits(key):
                yield from _placeable(played, fold, binding)


def _placeable(played: World, fold: ShardFold, binding: Binding) -> Iterator[str]:
    declared, claim, facts = binding.declared, binding.claim, played.worker.facts
    if declared is None or claim is None or not claim.is_scheduled_here or binding.suspension.scheduling:
        return
    capacity_request = fold.state.capacity_requests.get(binding.key)
    if (binding.blocked and binding.ready_to_retry) or (
        capacity_request is not None and capacity_request.due_ms
    ):
        return
    request = scheduling.request_of(binding, declared, claim, facts, fold.placements, fold.state)
    decision = schedule.schedule(request, facts.fleet)
    if decision.reason == SUCCESS and decision.columns[0]:
        yield f"unplaced: {binding.key} is {binding.condition}, and would be placed: {decision.columns}"
