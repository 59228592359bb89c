"""Candidates of a binding: the clusters that pass its placement's filters (the pool), with exceptions.

A cluster of the previous assignment passes in spite of a missing API or a taint; a cluster from which the
binding is being evicted is excluded. The order of filters is fixed: eviction, API, taints, affinity, spread
property, other workloads.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from engine.placement import compiled, encoded_columns, requests
from engine.placement import fleet as fleets

EVICTED: Final = "cluster(s) is in the process of eviction"
ANTI_AFFINITY_REASON: Final = "cluster already has workload with the same anti-affinity group"
AFFINITY_REASON: Final = "ResourceBinding with the same affinity group does not target this cluster"


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """Clusters that may be chosen, as fleet positions in name order, and the number of excluded ones by reason.

    ``whole`` means that every cluster of the fleet is a candidate.
    """

    pool: compiled.Pool
    index: encoded_columns.Integers
    excluded: Mapping[str, int]
    whole: bool


def candidates(pool: compiled.Pool, request: requests.Request, fleet: fleets.Fleet) -> Candidates:
    """Return the candidates of a binding: the clusters of a pool, with the exceptions that the module describes."""
    is_restricted = bool(request.excluded_by_groups) or request.allowed_by_groups is not None
    is_exceptional = request.evicting or pool.excludable or is_restricted
    exceptions = _exceptions(pool, request, fleet) if is_exceptional else {}
    if is_restricted:
        _exclude_by_groups(pool, request, fleet, exceptions)
    if not exceptions:
        return Candidates(pool=pool, index=pool.index, excluded=pool.excluded, whole=pool.whole)
    fits = pool.fits.copy()
    excluded = dict(pool.excluded)
    for position, reason in exceptions.items():
        previous_reason = pool.first_reason(position, is_previous=False)
        if previous_reason:
            excluded[previous_reason] -= 1
        if reason:
            excluded[reason] = excluded.get(reason, 0) + 1
        fits[position] = not reason
    index = np.flatnonzero(fits)
    return Candidates(
        pool=pool,
        index=index,
        excluded={reason: count for reason, count in excluded.items() if count},
        whole=len(index) == len(fits),
    )


def failures(pool: compiled.Pool, request: requests.Request, position: int, name: str) -> list[str]:
    """Return the messages of all filters that exclude a cluster, in the order of the filters."""
    is_previous = any(name == cluster for cluster, _ in request.current)
    messages = [EVICTED] if name in request.evicting else []
    for rule in pool.filters:
        code = int(rule.codes[position])
        if code and not (is_previous and rule.exempts_previous_clusters):
            messages.append(rule.texts[code])
    if (text := _group_failure(request, name)) and not is_previous:
        messages.append(text)
    return messages


def _group_failure(request: requests.Request, name: str) -> str:
    """Return why other workloads exclude a cluster; empty if they do not."""
    if request.allowed_by_groups is not None and name not in request.allowed_by_groups:
        return AFFINITY_REASON
    return ANTI_AFFINITY_REASON if name in request.excluded_by_groups else ""


def _exclude_by_groups(
    pool: compiled.Pool, request: requests.Request, fleet: fleets.Fleet, exceptions: dict[int, str]
) -> None:
    """Add to ``exceptions`` the clusters that workload groups exclude, each with the reason."""
    current = {name for name, _ in request.current}
    concerned = request.excluded_by_groups if request.allowed_by_groups is None else fleet.positions
    for name in concerned:
        position = fleet.positions.get(name)
        if position is None or name in current or position in exceptions or not pool.fits[position]:
            continue
        if text := _group_failure(request, name):
            exceptions[position] = text


def fit_message(total: int, excluded: Mapping[str, int]) -> str:
    """Return Karmada's message for "no cluster fits"."""
    if not excluded:
        return f"0/{total} clusters are available: no cluster exists."
    reasons = sorted(f"{count} {reason}" for reason, count in excluded.items())
    return f"0/{total} clusters are available: {', '.join(reasons)}."


def _exceptions(pool: compiled.Pool, request: requests.Request, fleet: fleets.Fleet) -> dict[int, str]:
    """Return the binding's exceptions by fleet position: the reason to exclude a cluster, or "" to admit it."""
    exceptions: dict[int, str] = {}
    if pool.excludable:
        previous = fleet.previous(request.current).known_positions
        for position in previous[pool.exempted[previous]].tolist():
            exceptions[position] = pool.first_reason(position, is_previous=True)
    for name in request.evicting:
        position = fleet.positions.get(name)
        if position is not None and pool.present[position]:
            exceptions[position] = EVICTED
    return exceptions
