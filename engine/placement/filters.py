"""Candidates of a binding: the pool of its placement, with the binding's own exceptions.

A cluster of the previous assignment passes in spite of a missing API or a taint; a cluster from which the
binding is being evicted is excluded. The order of filters is fixed: eviction, API, taints, affinity, spread
property.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from engine.placement import compiled, encoded_columns, requests
from engine.placement import fleet as fleets

EVICTED: Final = "cluster(s) is in the process of eviction"


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """Clusters that may be chosen, as fleet positions in name order, and the number of others by reason.

    ``whole`` means that every cluster of the fleet is a candidate.
    """

    pool: compiled.Pool
    index: encoded_columns.Integers
    excluded: Mapping[str, int]
    whole: bool


def candidates(pool: compiled.Pool, request: requests.Request, fleet: fleets.Fleet) -> Candidates:
    """Apply the binding's exceptions to a pool."""
    exceptions = _exceptions(pool, request, fleet) if request.evicting or pool.excludable else {}
    if not exceptions:
        return Candidates(pool=pool, index=pool.index, excluded=pool.excluded, whole=pool.whole)
    fits = pool.fits.copy()
    excluded = dict(pool.excluded)
    for position, reason in exceptions.items():
        previous_reason = pool.first_reason(position, excused=False)
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
    excused = any(name == cluster for cluster, _ in request.current)
    messages = [EVICTED] if name in request.evicting else []
    for rule in pool.filters:
        code = int(rule.codes[position])
        if code and not (excused and rule.excused):
            messages.append(rule.texts[code])
    return messages


def fit_message(total: int, excluded: Mapping[str, int]) -> str:
    """Return Karmada's message for "no cluster fits"."""
    if not excluded:
        return f"0/{total} clusters are available: no cluster exists."
    reasons = sorted(f"{count} {reason}" for reason, count in excluded.items())
    return f"0/{total} clusters are available: {', '.join(reasons)}."


def _exceptions(pool: compiled.Pool, request: requests.Request, fleet: fleets.Fleet) -> dict[int, str]:
    """Positions where the binding differs from the pool, with the reason that now applies (empty: it fits)."""
    exceptions: dict[int, str] = {}
    if pool.excludable:
        previous = fleet.previous(request.current).known
        for position in previous[pool.excusable[previous]].tolist():
            exceptions[position] = pool.first_reason(position, excused=True)
    for name in request.evicting:
        position = fleet.positions.get(name)
        if position is not None and pool.present[position]:
            exceptions[position] = EVICTED
    return exceptions
