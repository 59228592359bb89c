"""Division of seats by Webster's method (Sainte-Laguë), without giving them out one by one.

Giving one seat at a time to the greatest votes/(2*seats+1) means: of all seats that anybody could get, take the first
ones in the order (quotient descending, seats ascending, rank). So all seats above a bar can be given at once, if they
are no more than there are; only the few that are left go by priority. The quotient is a single float64 division, as
in the reference scheduler, so ties and near-ties fall as there.
"""

import heapq
import math
from typing import Final

import numpy as np

from engine.placement import facts

_A_LITTLE_LESS_THAN_HALF: Final = 0.5 * (1 - 1e-15)
"""Three roundings before it add less than 4e-16 of a share, so the product is never above the exact half."""


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
    if len(votes) <= facts.FEW:
        return np.array(
            _divide_few(votes.astype(np.float64).tolist(), seats, descending=descending), dtype=np.int64
        )
    if seats <= 0:
        return np.zeros(len(votes), dtype=np.int64)
    voting = votes != 0
    all_vote = bool(voting.all())
    if not all_vote and not voting.any():
        return np.zeros(len(votes), dtype=np.int64)
    strength = (votes if all_vote else votes[voting]).astype(np.float64)
    if descending:
        strength = strength[::-1]
    shares, quotients, left = _above_bar(strength, seats)
    _give_rest(strength, shares, quotients, left)
    if descending:
        shares = shares[::-1]
    if all_vote:
        return shares.astype(np.int64)
    given = np.zeros(len(votes), dtype=np.int64)
    given[voting] = shares
    return given


def _above_bar(strength: facts.Floats, seats: int) -> tuple[facts.Floats, facts.Floats, int]:
    """All seats whose quotient reaches a bar that no more than ``seats`` of them reach.

    They come with each party's next quotient, and with how many seats are left. Seats are counted in floats, which are
    exact here, for the quotients need them so.
    """
    # A little above the bar that an exact quota would have: rounding then seldom gives more seats than there are.
    bar = float(strength.sum()) / (2 * seats) * (1 + 0.6 * math.sqrt(len(strength)) / seats)
    raised = 1.0
    while True:
        # The guess is never too high: what is taken off is more than the roundings can have added. It may be one seat
        # too low where a quotient is next to the bar: what counts is the quotient itself.
        shares = strength / bar
        shares += 1
        shares *= _A_LITTLE_LESS_THAN_HALF
        np.floor(shares, out=shares)
        quotients = _next_quotients(strength, shares)
        reaching = quotients >= bar
        if reaching.any():
            shares += reaching
            quotients = _next_quotients(strength, shares)
        excess = int(shares.sum()) - seats
        if excess <= 0:
            return shares, quotients, -excess
        if raised > 1 and excess <= np.count_nonzero(shares):
            bar = _bar_without(strength, shares, excess)
        else:
            bar *= 1 + raised * excess / seats
        raised *= 2


def _bar_without(strength: facts.Floats, shares: facts.Floats, excess: int) -> float:
    """A bar that at least ``excess`` seats do not reach: no more than there are parties with seats.

    Where many votes are alike, so are quotients; a bar that is raised bit by bit stays below them for long.
    """
    holding = shares > 0
    lowest = strength[holding] / (2 * shares[holding] - 1)
    return math.nextafter(float(np.partition(lowest, excess - 1)[excess - 1]), math.inf)


def _next_quotients(strength: facts.Floats, shares: facts.Floats) -> facts.Floats:
    """What counts when the next seat is given: votes / (2 * seats + 1)."""
    divisors = shares * 2
    divisors += 1
    return np.divide(strength, divisors, out=divisors)


def _give_rest(strength: facts.Floats, shares: facts.Floats, quotients: facts.Floats, left: int) -> None:
    """Give the seats that are left to the next in order, in place."""
    if not left:
        return
    if left >= len(shares):
        contenders = np.arange(len(shares))
        threshold = 0.0
    else:
        threshold = float(np.partition(quotients, len(shares) - left)[len(shares) - left])
        contenders = np.flatnonzero(quotients >= threshold)
        if len(contenders) > left:
            above = contenders[quotients[contenders] > threshold]
            level = contenders[quotients[contenders] == threshold]
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
