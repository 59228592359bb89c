"""Explanation of a decision, made from the results of its stages.

Nothing is computed again: filters, free replicas, order and votes are read from the attempts.
"""

import numpy as np

from engine.placement import attempts, encoded_columns, filters, requests, scheduling_context
from engine.placement import fleet as fleets
from engine.placement.explanations import ClusterExplanation, Explanation, GroupExplanation, Step


def explain(request: requests.Request, tried: list[attempts.Attempt], fleet: fleets.Fleet) -> Explanation:
    return Explanation(
        mode="Fresh" if request.fresh else "Steady",
        groups=tuple(_group(attempt, request, fleet) for attempt in tried),
    )


def _group(attempt: attempts.Attempt, request: requests.Request, fleet: fleets.Fleet) -> GroupExplanation:
    chosen = _chosen(attempt)
    positions = {index: position for position, index in enumerate(attempt.candidates.index.tolist())}
    explanations = [
        _cluster(attempt, positions[index], name, chosen=chosen)
        if index in positions
        else ClusterExplanation(
            name=name,
            terminating=not attempt.candidates.pool.present[index],
            failed=tuple(filters.failures(attempt.candidates.pool, request, index, name)),
        )
        for name, index in fleet.positions.items()
    ]
    return GroupExplanation(
        affinity_name=attempt.group.name,
        error=str(attempt.error or ""),
        steps=tuple(Step(kind=share.kind, seats=share.seats, tier=share.tier) for share in attempt.shares),
        clusters=tuple(explanations),
    )


def _chosen(attempt: attempts.Attempt) -> encoded_columns.Mask:
    """The mask of the candidates that the spread constraints selected."""
    mask = np.ones(len(attempt.candidates.index), dtype=np.bool_)
    if attempt.chosen is not None:
        mask[:] = False
        mask[attempt.chosen] = True
    return mask


def _cluster(
    attempt: attempts.Attempt, position: int, name: str, *, chosen: encoded_columns.Mask
) -> ClusterExplanation:
    context = attempt.context
    if context is None:
        return ClusterExplanation(name=name)
    candidates = [
        share for share in attempt.shares if share.tier is None or _tier(context, position) == share.tier
    ]
    share = candidates[0] if candidates and chosen[position] else None
    return ClusterExplanation(
        name=name,
        score=scheduling_context.SCORE_OF_CURRENT if context.current[position] else 0,
        allocatable=int(context.free[position]),
        available=int(context.available[position]),
        tier=_tier(context, position),
        selected=bool(chosen[position]) and attempt.error is None,
        weight=None if share is None or share.votes is None else int(share.votes[position]),
        kept=None if share is None or share.kept is None else int(share.kept[position]),
        replicas=None if share is None else int(share.replicas[position]),
    )


def _tier(context: scheduling_context.Context, position: int) -> int | None:
    return None if context.tiers is None else int(context.tiers[position])
