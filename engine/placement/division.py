"""Division of seats by Webster's method (Sainte-Laguë), without assigning them one by one.

Assigning one seat at a time to the highest votes/(2*seats+1) is the same as ordering all possible seats by
(quotient descending, seats ascending, rank) and taking the first ones. So all seats whose quotient reaches a threshold
(``bar``) can be assigned at once, if there are at most as many as wanted. Only the few others are assigned one by one.
The quotient is one float64 division, as in Karmada's scheduler, so ties and near-ties have the same result.
"""

import heapq
import math
from typing import Final

import numpy as np

from engine.placement import encoded_columns

_JUST_BELOW_HALF: Final = 0.5 * (1 - 1e-15)
"""Factor slightly below 1/2: it lowers estimates of seats by more than three roundings add, so none is too high."""


def breaks_ties_descending(uid: str) -> bool:
    """Return whether ties go to the later name: True if the workload has a uid whose FNV-1a-32 hash is odd.

    The lowest bit of that hash depends only on the lowest bits of the bytes: the offset basis and the prime
    are odd, so each round flips the bit exactly if the byte is odd.
    """
    return bool(uid) and sum(uid.encode()) % 2 == 0


def divide(votes: encoded_columns.Integers, seats: int, *, descending: bool) -> encoded_columns.Integers:
    """Return the seats of each party; without votes or seats, every party gets 0.

    Parties are in name order. Of parties with equal quotients and seats, the first one gets the next seat
    (``descending``: the last one).
    """
    if len(votes) <= encoded_columns.FEW_CLUSTERS:
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
    shares, quotients, remaining = _above_bar(strength, seats)
    _assign_rest(strength, shares, quotients, remaining)
    if descending:
        shares = shares[::-1]
    if all_vote:
        return shares.astype(np.int64)
    seats_of = np.zeros(len(votes), dtype=np.int64)
    seats_of[voting] = shares
    return seats_of


def _above_bar(
    strength: encoded_columns.Floats, seats: int
) -> tuple[encoded_columns.Floats, encoded_columns.Floats, int]:
    """Assign the seats with the highest quotients: all that reach ``bar``, without exceeding ``seats``.

    ``bar`` is estimated first, and raised until at most ``seats`` quotients reach it. Return the seats of each party,
    the quotient for each party's next seat, and the number of seats left to assign. Seats are floats because the
    quotients need float64; they are exact in this range.
    """
    # Start slightly above the exact quota's threshold, so that rounding seldom assigns too many seats.
    bar = float(strength.sum()) / (2 * seats) * (1 + 0.6 * math.sqrt(len(strength)) / seats)
    raised = 1.0
    while True:
        # The estimate is never too high: the factor removes more than the roundings can add. It may be one
        # seat too low if a quotient is very close to ``bar``, so the quotient itself is compared below.
        shares = strength / bar
        shares += 1
        shares *= _JUST_BELOW_HALF
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


def _bar_without(strength: encoded_columns.Floats, shares: encoded_columns.Floats, excess: int) -> float:
    """Return a higher ``bar`` that the quotients of at least ``excess`` assigned seats do not reach.

    Of a party's seats, the last one has the lowest quotient. The new bar is just above the ``excess``-th lowest of
    these quotients, so at least ``excess`` parties must have seats. Raising the bar in small steps would take long for
    equal votes.
    """
    holding = shares > 0
    lowest = strength[holding] / (2 * shares[holding] - 1)
    return math.nextafter(float(np.partition(lowest, excess - 1)[excess - 1]), math.inf)


def _next_quotients(
    strength: encoded_columns.Floats, shares: encoded_columns.Floats
) -> encoded_columns.Floats:
    """The quotients for the next seats: votes / (2 * seats + 1)."""
    divisors = shares * 2
    divisors += 1
    return np.divide(strength, divisors, out=divisors)


def _assign_rest(
    strength: encoded_columns.Floats,
    shares: encoded_columns.Floats,
    quotients: encoded_columns.Floats,
    remaining: int,
) -> None:
    """Add the remaining seats to ``shares`` in place, by descending quotient."""
    if not remaining:
        return
    if remaining >= len(shares):
        contenders = np.arange(len(shares))
        threshold = 0.0
    else:
        threshold = float(np.partition(quotients, len(shares) - remaining)[len(shares) - remaining])
        contenders = np.flatnonzero(quotients >= threshold)
        if len(contenders) > remaining:
            above = contenders[quotients[contenders] > threshold]
            level = contenders[quotients[contenders] == threshold]
            level = level[np.argsort(shares[level], kind="stable")][: remaining - len(above)]
            contenders = np.concatenate((above, level))
    following = strength[contenders] / (2 * shares[contenders] + 3)
    if len(contenders) == remaining and not (following >= threshold).any():
        shares[contenders] += 1
        return
    assigned = shares[contenders].tolist()
    weights = strength[contenders].tolist()
    ranks = contenders.tolist()
    queue = [(-w / (2 * n + 1), n, rank, w) for w, n, rank in zip(weights, assigned, ranks, strict=True)]
    heapq.heapify(queue)
    for _ in range(remaining):
        _, n, rank, w = queue[0]
        heapq.heapreplace(queue, (-w / (2 * n + 3), n + 1, rank, w))
    for _, n, rank, _ in queue:
        shares[rank] = n


def _divide_few(votes: list[float], seats: int, *, descending: bool) -> list[int]:
    """Return the same seats as ``divide``, computed in plain Python: faster for few parties."""
    total = sum(votes)
    if seats <= 0 or not total:
        return [0] * len(votes)
    votes = votes[::-1] if descending else votes
    bar = total / (2 * seats)
    raised = 1.0
    while True:
        shares = [_reaching(vote, bar) for vote in votes]
        remaining = seats - sum(shares)
        if remaining >= 0:
            break
        bar *= 1 - raised * remaining / seats
        raised *= 2
    queue = [
        (-vote / (2 * n + 1), n, rank)
        for rank, (vote, n) in enumerate(zip(votes, shares, strict=True))
        if vote
    ]
    for _ in range(remaining):
        first = min(queue)
        n, rank = first[1:]
        shares[rank] = n + 1
        queue[queue.index(first)] = (-votes[rank] / (2 * n + 3), n + 1, rank)
    return shares[::-1] if descending else shares


def _reaching(vote: float, bar: float) -> int:
    """Return the number of seats of one party whose quotients reach the threshold ``bar``."""
    share = int((vote / bar + 1) / 2)
    if share and vote / (2 * share - 1) < bar:
        return share - 1
    return share + 1 if vote / (2 * share + 1) >= bar else share
