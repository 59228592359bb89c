"""Webster's division equals assigning seats one by one."""

import heapq

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.placement import division


def one_by_one(votes: list[int], seats: int, *, descending: bool) -> list[int]:
    """Webster's method by definition: the next seat goes to the greatest votes / (2 * seats + 1)."""
    given_to = [0] * len(votes)
    sign = -1 if descending else 1
    queue = [(-float(vote), 0, sign * rank) for rank, vote in enumerate(votes) if vote]
    heapq.heapify(queue)
    for _ in range(seats if queue else 0):
        _, won, signed = queue[0]
        rank = sign * signed
        given_to[rank] = won + 1
        heapq.heapreplace(queue, (-(float(votes[rank]) / (2 * won + 3)), won + 1, signed))
    return given_to


few_values = st.lists(st.sampled_from([0, 1, 2, 3, 5, 9, 10]), min_size=1, max_size=80)
any_values = st.lists(st.integers(0, 10_000), min_size=1, max_size=80)
skewed = st.lists(st.sampled_from([0, 1, 7, 1_000, 10**6, 2**44]), min_size=1, max_size=80)
huge = st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=40)


@given(votes=few_values | any_values | skewed | huge, seats=st.integers(0, 700), descending=st.booleans())
@example(votes=[1] * 60, seats=59, descending=True)
@example(votes=[95_000] + [1] * 50, seats=1_000, descending=False)
@example(votes=[3] * 30 + [1] * 30, seats=45, descending=True)
@example(votes=[1, 2, 3] * 25, seats=149, descending=False)
@example(votes=[2**63 - 1] * 30, seats=7, descending=False)
def test_division_equals_assigning_seats_one_by_one(
    votes: list[int], seats: int, *, descending: bool
) -> None:
    shares = division.divide(np.array(votes, dtype=np.int64), seats, descending=descending)
    assert shares.tolist() == one_by_one(votes, seats, descending=descending)


@given(votes=few_values | any_values, seats=st.integers(1, 5_000))
def test_all_seats_are_assigned_if_there_are_votes(votes: list[int], seats: int) -> None:
    shares = division.divide(np.array(votes, dtype=np.int64), seats, descending=False)
    assert shares.sum() == (seats if any(votes) else 0)


@pytest.mark.parametrize("parties", [3, 40])
def test_tie_goes_to_the_first_or_to_the_last_name(parties: int) -> None:
    votes = np.full(parties, 10, dtype=np.int64)
    assert division.divide(votes, 1, descending=False).tolist() == [1, *[0] * (parties - 1)]
    assert division.divide(votes, 1, descending=True).tolist() == [*[0] * (parties - 1), 1]


def fnv_1a_32(text: str) -> int:
    digest = 0x811C9DC5
    for byte in text.encode():
        digest = (digest ^ byte) * 0x01000193 & 0xFFFFFFFF
    return digest


@given(st.text(min_size=1))
def test_ties_are_reversed_by_an_odd_hash_of_the_uid(uid: str) -> None:
    assert division.breaks_ties_descending(uid) == bool(fnv_1a_32(uid) % 2)


def test_ties_are_not_reversed_without_a_uid() -> None:
    assert not division.breaks_ties_descending("")
