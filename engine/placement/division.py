"""Division of seats by Webster's method (Sainte-Laguë), without giving them out one by one.

Giving one seat at a time to the greatest votes/(2*seats+1) means: of all seats that anybody could get, take the first
ones in the order (quotient descending, seats ascending, rank). So all seats above a bar can be given at once, if they
are no more than there are; only the few that are left go by priority. The quotient is a single float64 division, as
in the reference scheduler, so ties and near-ties fall as there.
"""

import heapq

import numpy as np

from engine.placement import facts

_FEW = 24
"""Up to so many parties plain Python is faster than the fixed cost of array operations."""


def breaks_ties_descending(uid: str) -> bool:
    """Whether ties go to the later name: for a workload with a uid whose FNV-1a-32 hash is odd.

    The lowest bit of that hash depends on the lowest bits of the bytes alone: the prime is odd, so each round only
    flips it where the byte is odd, and the offset basis is odd.
    """
    return bool(uid) and sum(uid.encode()) % 2 == 0


def divide(votes: facts.Integers, seats: int, *, descending: bool) -> facts.Integers:
    """Seats of each party; parties stand in name order, which decides the last ties (the later name first if asked).

    Without any votes, or seats, nobody gets one.
    """
    if len(votes) <= _FEW:
        return np.array(
            _divide_few(votes.astype(np.float64).tolist(), seats, descending=descending), dtype=np.int64
        )
    given = np.zeros(len(votes), dtype=np.int64)
    parties = np.flatnonzero(votes)
    if seats <= 0 or not len(parties):
        return given
    strength = votes[parties].astype(np.float64)
    if descending:
        strength = strength[::-1]
    shares, left = _above_bar(strength, seats)
    _give_rest(strength, shares, left)
    given[parties] = shares[::-1] if descending else shares
    return given


def _above_bar(strength: facts.Floats, seats: int) -> tuple[facts.Integers, int]:
    """All seats whose quotient reaches a bar that no more than ``seats`` of them reach, and how many are left."""
    bar = float(strength.sum()) / (2 * seats)
    raised = 1.0
    while True:
        shares = ((strength / bar + 1) / 2).astype(np.int64)
        # The guess can be one off where a quotient is next to the bar: what counts is the quotient itself.
        shares -= (shares > 0) & (strength / (2 * shares - 1) < bar)
        shares += strength / (2 * shares + 1) >= bar
        excess = int(shares.sum()) - seats
        if excess <= 0:
            return shares, -excess
        bar *= 1 + raised * excess / seats
        raised *= 2


def _give_rest(strength: facts.Floats, shares: facts.Integers, left: int) -> None:
    """Give the seats that are left to the next in order, in place."""
    if not left:
        return
    quotients = strength / (2 * shares + 1)
    if left >= len(shares):
        contenders = np.arange(len(shares))
        threshold = 0.0
    else:
        threshold = float(np.partition(quotients, len(shares) - left)[len(shares) - left])
        above = np.flatnonzero(quotients > threshold)
        level = np.flatnonzero(quotients == threshold)
        level = level[np.argsort(shares[level], kind="stable")][: left - len(above)]
        contenders = np.concatenate((above, level))
    following = strength[contenders] / (2 * shares[contenders] + 3)
    if len(contenders) == left and not (following >= threshold).any():
        shares[contenders] += 1
        return
    held = shares[contenders].tolist()
    weights = strength[contenders].tolist()
    ranks = contenders.tolist()
    queue = [(-w / (2 * n + 1), n, rank, w) for w, n, rank in zip(weights, held, ranks, strict=True)]
    heapq.heapify(queue)
    for _ in range(left):
        _, n, rank, w = queue[0]
        heapq.heapreplace(queue, (-w / (2 * n + 3), n + 1, rank, w))
    for _, n, rank, _ in queue:
        shares[rank] = n


def _divide_few(votes: list[float], seats: int, *, descending: bool) -> list[int]:
    """The same for a handful of parties."""
    total = sum(votes)
    if seats <= 0 or not total:
        return [0] * len(votes)
    votes = votes[::-1] if descending else votes
    bar = total / (2 * seats)
    raised = 1.0
    while True:
        shares = [_reaching(vote, bar) for vote in votes]
        left = seats - sum(shares)
        if left >= 0:
            break
        bar *= 1 - raised * left / seats
        raised *= 2
    queue = [
        (-vote / (2 * n + 1), n, rank)
        for rank, (vote, n) in enumerate(zip(votes, shares, strict=True))
        if vote
    ]
    for _ in range(left):
        first = min(queue)
        n, rank = first[1:]
        shares[rank] = n + 1
        queue[queue.index(first)] = (-votes[rank] / (2 * n + 3), n + 1, rank)
    return shares[::-1] if descending else shares


def _reaching(vote: float, bar: float) -> int:
    """How many seats of one party have a quotient that reaches the bar."""
    share = int((vote / bar + 1) / 2)
    if share and vote / (2 * share - 1) < bar:
        return share - 1
    return share + 1 if vote / (2 * share + 1) >= bar else share
