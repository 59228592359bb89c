"""Available replicas: how many more of a workload each candidate holds.

By the reference's general estimator: the scarcest requested resource, then free pods. A cluster with a resource model
counts nodes by grade instead of its summary. Integers throughout; a cluster's room is counted up to 2**44 replicas.
"""

from typing import TYPE_CHECKING

import numpy as np

from engine.placement import capacity, facts, filters, requests

if TYPE_CHECKING:
    from engine.placement import fleet as fleets

UNLIMITED = 2**31 - 1
"""What the reference answers where there is nothing to estimate."""


def allocatable(
    request: requests.Request, candidates: filters.Candidates, fleet: "fleets.Fleet"
) -> facts.Integers:
    """Free replicas in each candidate, not counting those that run there already; a column of its own."""
    if request.replicas == 0 and not request.components:
        return np.full(len(candidates.index), UNLIMITED, dtype=np.int64)
    asked = request.requests or ()
    room = fleet.pods.copy() if candidates.whole else fleet.pods[candidates.index]
    for resource, amount in asked:
        column = fleet.units(resource)
        if column is None:
            room.fill(0)
            break
        np.minimum(room, (column if candidates.whole else column[candidates.index]) // amount, out=room)
    if fleet.graded:
        _count_nodes(room, asked, candidates.index, fleet)
    if fleet.reaches_sentinel:
        np.minimum(room, capacity.ROOM_MAX, out=room)
        # The reference takes its mark for "not estimated" at its word, also where it is a real number of pods.
        room[room == UNLIMITED] = request.replicas
    return room


def _count_nodes(
    room: facts.Integers, asked: requests.Requests, index: facts.Integers, fleet: "fleets.Fleet"
) -> None:
    """Replace the room of the candidates that have a resource model."""
    for place, modelled in fleet.graded.items():
        position = int(np.searchsorted(index, place))
        if position < len(index) and index[position] == place:
            nodes = sum(grade.replicas(asked) for grade in modelled.grades)
            room[position] = min(modelled.pods, nodes)
