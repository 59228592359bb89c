"""Replicas of each chosen cluster: the division strategies, and overflow tier by tier.

Steady mode moves as little as possible: a scale-up adds to the running replicas, a scale-down divides the new
total in the previous proportions. Fresh mode divides all replicas again, as if the workload had never been
scheduled.
"""

from typing import Final

import msgspec
import numpy as np

from engine.placement import compiled, division, encoded_columns, failures, scheduling_context

KEPT: Final = "kept"
SCALE_UP: Final = "scale up"
SCALE_DOWN: Final = "scale down"
FRESH: Final = "do fresh scale"
ALL_ALIKE: Final = "duplicated"
BY_WEIGHT: Final = "static weight"


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """One division over all candidates, as columns.

    ``seats`` are the replicas that were divided, ``votes`` the weights, 0 for a cluster that took no part.
    ``kept`` are running replicas that a cluster keeps in addition to its seats (None: no cluster has any);
    ``replicas`` is the result.
    """

    kind: str
    seats: int
    votes: encoded_columns.Integers | None
    kept: encoded_columns.Integers | None
    replicas: encoded_columns.Integers
    tier: int | None = None


def assign(context: scheduling_context.Context, chosen: encoded_columns.Integers | None) -> list[Share]:
    """Divide the replicas over the chosen positions (None: all candidates); return one share per overflow tier.

    The replicas of several shares are to be added. Raises `failures.UnschedulableError` if the capacity is
    insufficient, `failures.PlacementError` if no cluster is chosen or the strategy is unknown.
    """
    if context.tiers is None:
        return [_share(context, chosen, context.request.replicas, None)]
    order = context.order if chosen is None else chosen
    tiers = context.tiers[order]
    left = context.request.replicas
    shares: list[Share] = []
    for tier in np.unique(tiers).tolist():
        members = order[tiers == tier]
        taken = min(left, int(context.available[members].sum()))
        if taken:
            shares.append(_share(context, members, taken, tier))
            left -= taken
    if left:
        msg = "failed to assign replicas: Clusters available replicas are not enough to schedule."
        raise failures.UnschedulableError(msg)
    return shares


def _share(
    context: scheduling_context.Context,
    chosen: encoded_columns.Integers | None,
    replicas: int,
    tier: int | None,
) -> Share:
    match context.masks.strategy:
        case compiled.DUPLICATED:
            column = np.full(len(context.index), replicas, dtype=np.int64)
            return Share(
                kind=ALL_ALIKE,
                seats=replicas,
                votes=None,
                kept=None,
                replicas=_only(column, chosen),
                tier=tier,
            )
        case compiled.STATIC:
            votes = _only(_static_votes(context, chosen), chosen)
            return _divided(context, BY_WEIGHT, votes, replicas, None, tier)
        case compiled.DYNAMIC | compiled.AGGREGATED:
            return _by_capacity(context, chosen, replicas, tier)
        case _:
            preference = context.masks.preference
            kind = "" if preference is None else preference.replica_scheduling_type
            division_kind = "" if preference is None else preference.replica_division_preference
            msg = (
                "failed to assign replicas: unsupported replica scheduling strategy, "
                f"replicaSchedulingType: {kind}, replicaDivisionPreference: {division_kind}"
            )
            raise failures.PlacementError(msg)


def _by_capacity(
    context: scheduling_context.Context,
    chosen: encoded_columns.Integers | None,
    replicas: int,
    tier: int | None,
) -> Share:
    """Divide by capacity (dynamic weight and Aggregated).

    The weights are free replicas; in a scale-down the running replicas, in fresh mode the sum of both.
    """
    room = _only(context.free, chosen)
    own = None if context.own is None else _only(context.own, chosen)
    held = 0 if own is None else int(own.sum())
    if context.request.fresh:
        kind, votes, seats, kept = FRESH, room if own is None else room + own, replicas, None
    elif own is not None and held > replicas:
        kind, votes, seats, kept = SCALE_DOWN, own, replicas, None
    elif held == replicas:
        replicas_kept = np.zeros_like(room) if own is None else own
        return Share(kind=KEPT, seats=0, votes=None, kept=own, replicas=replicas_kept, tier=tier)
    else:
        kind, votes, seats, kept = SCALE_UP, room, replicas - held, own
    total = int(votes.sum())
    if total < seats:
        lack = f"Clusters available replicas {total} are not enough to schedule."
        raise failures.UnschedulableError(f"failed to assign replicas: failed to {kind}: {lack}")
    if context.masks.strategy == compiled.AGGREGATED:
        votes = _only(votes, _shortest_prefix(votes, _aggregated_order(context, chosen, kind, votes), seats))
    return _divided(context, kind, votes, seats, kept, tier)


def _divided(
    context: scheduling_context.Context,
    kind: str,
    votes: encoded_columns.Integers,
    seats: int,
    kept: encoded_columns.Integers | None,
    tier: int | None,
) -> Share:
    descending = division.breaks_ties_descending(context.request.resource.uid)
    given = division.divide(votes, seats, descending=descending)
    replicas = given if kept is None else given + kept
    return Share(kind=kind, seats=seats, votes=votes, kept=kept, replicas=replicas, tier=tier)


def _static_votes(
    context: scheduling_context.Context, chosen: encoded_columns.Integers | None
) -> encoded_columns.Integers:
    """Static weights of the candidates; equal weights if no rule matches any chosen cluster."""
    weights = context.masks.weights
    votes = np.zeros(len(context.index), dtype=np.int64) if weights is None else weights[context.index]
    among = votes if chosen is None else votes[chosen]
    return votes if among.any() else np.ones_like(votes)


def _aggregated_order(
    context: scheduling_context.Context,
    chosen: encoded_columns.Integers | None,
    kind: str,
    votes: encoded_columns.Integers,
) -> encoded_columns.Integers:
    """Positions by descending votes; ties keep the order in which the clusters were chosen.

    A scale-up puts clusters with running replicas first. A scale-down has only the previous clusters, in
    their own order.
    """
    if kind == SCALE_DOWN:
        order = _once(context.held.positions)
        return order[np.argsort(-votes[order], kind="stable")]
    if chosen is None and not len(context.held.positions):
        return context.order
    order = context.order if chosen is None else chosen
    order = order[np.argsort(-votes[order], kind="stable")]
    if kind == SCALE_UP and context.own is not None:
        order = order[np.argsort(context.own[order] == 0, kind="stable")]
    return order


def _once(positions: encoded_columns.Integers) -> encoded_columns.Integers:
    """Remove repeated positions; keep the first of each."""
    if (positions[1:] > positions[:-1]).all():
        return positions
    _, firsts = np.unique(positions, return_index=True)
    return positions[np.sort(firsts)]


def _shortest_prefix(
    votes: encoded_columns.Integers, order: encoded_columns.Integers, seats: int
) -> encoded_columns.Integers:
    """The shortest prefix of ``order`` whose votes add up to ``seats``."""
    return order[: int(np.searchsorted(np.cumsum(votes[order]), seats)) + 1]


def _only(
    column: encoded_columns.Integers, chosen: encoded_columns.Integers | None
) -> encoded_columns.Integers:
    """A copy of the column with zeros at all positions that are not chosen."""
    if chosen is None:
        return column
    kept = np.zeros_like(column)
    kept[chosen] = column[chosen]
    return kept
