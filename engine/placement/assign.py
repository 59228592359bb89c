"""Assign replicas to the chosen clusters: the division strategies, applied to one overflow tier after another.

Steady mode moves as little as possible: a scale-up adds to the running replicas, a scale-down divides the new
total in the previous proportions. Fresh mode divides all replicas again, as if the workload had never been
scheduled.
"""

import msgspec
import numpy as np

from engine.placement import compiled, division, encoded_columns, failures, scheduling_context
from engine.placement.explanations import BY_WEIGHT, DUPLICATED, FRESH, KEPT, SCALE_DOWN, SCALE_UP


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """One division of replicas; each column has a value for each candidate cluster.

    ``seats`` is the number of replicas divided; ``votes`` are the weights (0: the cluster took no part; None: nothing
    was divided). ``kept`` are running replicas that a cluster keeps in addition to its seats (None: no cluster has
    any); ``replicas`` is the result.
    """

    kind: str
    seats: int
    votes: encoded_columns.Integers | None
    kept: encoded_columns.Integers | None
    replicas: encoded_columns.Integers
    tier: int | None = None


def assign(context: scheduling_context.Context, chosen: encoded_columns.Integers | None) -> list[Share]:
    """Divide the replicas over the chosen positions (None: all candidates); return one share per overflow tier.

    Callers add up the replicas of the shares. Raises `failures.UnschedulableError` if the capacity is
    insufficient, `failures.PlacementError` if no cluster is chosen or the strategy is unknown.
    """
    if context.tiers is None:
        return [_share(context, chosen, context.request.replicas, None)]
    order = context.order if chosen is None else chosen
    tiers = context.tiers[order]
    remaining = context.request.replicas
    shares: list[Share] = []
    for tier in np.unique(tiers).tolist():
        members = order[tiers == tier]
        divided = min(remaining, int(context.available[members].sum()))
        if divided:
            shares.append(_share(context, members, divided, tier))
            remaining -= divided
    if remaining:
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
        case compiled.Strategy.DUPLICATED:
            column = np.full(len(context.index), replicas, dtype=np.int64)
            return Share(
                kind=DUPLICATED,
                seats=replicas,
                votes=None,
                kept=None,
                replicas=_masked(column, chosen),
                tier=tier,
            )
        case compiled.Strategy.STATIC:
            votes = _masked(_static_votes(context, chosen), chosen)
            return _divide(context, BY_WEIGHT, votes, replicas, None, tier)
        case compiled.Strategy.DYNAMIC | compiled.Strategy.AGGREGATED:
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
    free = _masked(context.free, chosen)
    running = None if context.running is None else _masked(context.running, chosen)
    running_total = 0 if running is None else int(running.sum())
    if context.request.fresh:
        kind, votes, seats, kept = FRESH, free if running is None else free + running, replicas, None
    elif running is not None and running_total > replicas:
        kind, votes, seats, kept = SCALE_DOWN, running, replicas, None
    elif running_total == replicas:
        replicas_kept = np.zeros_like(free) if running is None else running
        return Share(kind=KEPT, seats=0, votes=None, kept=running, replicas=replicas_kept, tier=tier)
    else:
        kind, votes, seats, kept = SCALE_UP, free, replicas - running_total, running
    total = int(votes.sum())
    if total < seats:
        reason = f"Clusters available replicas {total} are not enough to schedule."
        raise failures.UnschedulableError(f"failed to assign replicas: failed to {kind}: {reason}")
    if context.masks.strategy == compiled.Strategy.AGGREGATED:
        votes = _masked(
            votes, _shortest_prefix(votes, _aggregated_order(context, chosen, kind, votes), seats)
        )
    return _divide(context, kind, votes, seats, kept, tier)


def _divide(
    context: scheduling_context.Context,
    kind: str,
    votes: encoded_columns.Integers,
    seats: int,
    kept: encoded_columns.Integers | None,
    tier: int | None,
) -> Share:
    descending = division.breaks_ties_descending(context.request.resource.uid)
    divided = division.divide(votes, seats, descending=descending)
    replicas = divided if kept is None else divided + kept
    return Share(kind=kind, seats=seats, votes=votes, kept=kept, replicas=replicas, tier=tier)


def _static_votes(
    context: scheduling_context.Context, chosen: encoded_columns.Integers | None
) -> encoded_columns.Integers:
    """Static weights of the candidates; equal weights if no rule matches any chosen cluster."""
    weights = context.masks.weights
    votes = np.zeros(len(context.index), dtype=np.int64) if weights is None else weights[context.index]
    considered = votes if chosen is None else votes[chosen]
    return votes if considered.any() else np.ones_like(votes)


def _aggregated_order(
    context: scheduling_context.Context,
    chosen: encoded_columns.Integers | None,
    kind: str,
    votes: encoded_columns.Integers,
) -> encoded_columns.Integers:
    """Positions by descending weight (``votes``); ties keep the order in which the clusters were chosen.

    A scale-up puts clusters with running replicas first. A scale-down has only the clusters of the previous
    assignment; ties keep the order of that assignment.
    """
    if kind == SCALE_DOWN:
        order = _without_repeats(context.previous.positions)
        return order[np.argsort(-votes[order], kind="stable")]
    if chosen is None and not len(context.previous.positions):
        return context.order
    order = context.order if chosen is None else chosen
    order = order[np.argsort(-votes[order], kind="stable")]
    if kind == SCALE_UP and context.running is not None:
        order = order[np.argsort(context.running[order] == 0, kind="stable")]
    return order


def _without_repeats(positions: encoded_columns.Integers) -> encoded_columns.Integers:
    """Remove repeated positions; keep the first of each."""
    if (positions[1:] > positions[:-1]).all():
        return positions
    _, firsts = np.unique(positions, return_index=True)
    return positions[np.sort(firsts)]


def _shortest_prefix(
    votes: encoded_columns.Integers, order: encoded_columns.Integers, seats: int
) -> encoded_columns.Integers:
    """The shortest prefix of ``order`` whose votes add up to at least ``seats``."""
    return order[: int(np.searchsorted(np.cumsum(votes[order]), seats)) + 1]


def _masked(
    column: encoded_columns.Integers, chosen: encoded_columns.Integers | None
) -> encoded_columns.Integers:
    """Return the column with zeros at all positions that are not chosen; unchanged if ``chosen`` is None."""
    if chosen is None:
        return column
    kept = np.zeros_like(column)
    kept[chosen] = column[chosen]
    return kept
