"""Documented differences between the decisions of Karmada's scheduler and those of this engine."""

from collections.abc import Mapping
from typing import Final

from engine.placement import compiled, decisions, fleet, requests, schedule
from events import observations

_NEGATIVE: Final = "Clusters available replicas -"
"""Text in Karmada's message if its 32-bit sum of available replicas overflowed and became negative."""

_STABLY_SORTED_MAX: Final = 12
"""Maximum number of entries for which Karmada's sort is stable."""


def known_difference(
    observed: observations.ShadowCondition, request: requests.Request, known: fleet.Fleet
) -> str:
    """Return the documented difference that explains why this engine's result is not ``observed``; empty if none."""
    if _NEGATIVE in observed.message:
        return "Karmada's 32-bit sum of available replicas wraps around"
    computed = schedule.schedule(request, known, explain=True)
    is_aggregated = compiled.strategy(request.placement.replica_scheduling) == compiled.Strategy.AGGREGATED
    if (
        observed.reason == decisions.SUCCESS
        and is_aggregated
        and _differs_by_a_tie(observed.clusters, computed, request)
    ):
        return "Karmada sorts equal clusters of an Aggregated division unstably"
    return ""


def _differs_by_a_tie(
    placed: Mapping[str, int], decision: decisions.Decision, request: requests.Request
) -> bool:
    """Whether two results differ only in how they distribute replicas over clusters with equal capacity.

    Karmada's sort is stable for up to twelve clusters, so such a difference needs more than twelve.
    """
    chosen, before = dict(decision.clusters), dict(request.current)
    differing = sorted(name for name in placed.keys() | chosen.keys() if placed.get(name) != chosen.get(name))
    groups = decision.explanation.groups if decision.explanation is not None else ()
    selected = {
        cluster.name: cluster for group in groups[-1:] for cluster in group.clusters if cluster.selected
    }
    if len(selected) <= _STABLY_SORTED_MAX or not selected.keys() >= set(differing):
        return False
    gained = [
        sorted(result.get(name, 0) - before.get(name, 0) for name in differing) for result in (placed, chosen)
    ]
    available = {(selected[name].tier, selected[name].allocatable) for name in differing}
    return gained[0] == gained[1] and len(available) == 1
