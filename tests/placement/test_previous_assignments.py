"""Previous assignments as columns: those cached from a decision equal those built from its pairs."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from engine.objects import placements
from engine.placement import fleet, previous_assignment, requests, schedule
from tests.placement import strategies

POSITIONS = {name: position for position, name in enumerate(strategies.NAMES)}
MANY = tuple((name, number) for number, name in enumerate(strategies.NAMES))


def test_clusters_become_positions_and_unknown_ones_are_marked() -> None:
    former = previous_assignment.PreviousAssignments({"a": 0, "b": 1}).columns(
        (("b", 3), ("gone", 7), ("a", 0), ("b", 1))
    )
    assert former.positions.tolist() == [1, -1, 0, 1]
    assert former.replicas.tolist() == [3, 7, 0, 1]
    assert former.known_positions.tolist() == [1, 0, 1]


def test_columns_of_a_long_assignment_are_cached() -> None:
    kept = previous_assignment.PreviousAssignments(POSITIONS)
    assert kept.columns(MANY) is kept.columns(MANY)
    assert kept.columns(MANY[:3]) is not kept.columns(MANY[:3])


def test_other_tuple_has_its_own_columns() -> None:
    kept = previous_assignment.PreviousAssignments(POSITIONS)
    for start in range(10):
        assert kept.columns(MANY[start:]).replicas.tolist() == list(range(start, len(MANY)))


def uneven() -> fleet.Fleet:
    """Forty clusters with capacity, each for another number of pods."""
    known = strategies.filled([strategies.with_large_capacity(name) for name in strategies.NAMES])
    for number, name in enumerate(strategies.NAMES):
        known.report(name, strategies.summary(400_000, 400_000, 10 + number * 7 % 31, 0))
    return known


@given(st.integers(30, 200), st.data())
def test_rescale_with_cached_columns_equals_one_without(replicas: int, data: st.DataObject) -> None:
    known, stranger = uneven(), uneven()
    request = requests.Request(
        resource=strategies.resource(data.draw(st.sampled_from(["", "a", "b"]))),
        placement=placements.Placement(replica_scheduling=data.draw(strategies.divided_by_capacity())),
        replicas=replicas,
        fresh=data.draw(st.booleans()),
    )
    first = schedule.schedule(request, known)
    assert first.chosen is not None
    positions, numbers = first.chosen.numbers()
    made = previous_assignment.PreviousAssignments(
        {name: position for position, name in enumerate(known.names())}
    ).columns(first.clusters)
    assert (made.positions.tolist(), made.replicas.tolist()) == (positions.tolist(), numbers.tolist())
    known.cache_columns(first.clusters, positions, numbers)
    for name in (None, *first.columns[0][:2]):
        if name is not None:
            # The removal invalidates the cached columns of the previous assignment.
            known.remove(name)
            stranger.remove(name)
        rescaled = msgspec.structs.replace(
            request, current=first.clusters, replicas=data.draw(st.integers(1, 200))
        )
        cached, fresh = (
            schedule.schedule(rescaled, fleet_state, explain=True) for fleet_state in (known, stranger)
        )
        assert (cached.clusters, cached.message) == (fresh.clusters, fresh.message)
        assert cached.explanation == fresh.explanation
