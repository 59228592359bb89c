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
    models = fleet.nodes()
    if models is not None:
        nodes = np.minimum(models.replicas(asked), fleet.pods[models.places])
        _put(room, nodes, models.places, candidates)
    if fleet.reaches_sentinel:
        np.minimum(room, capacity.ROOM_MAX, out=room)
        # The reference takes its mark for "not estimated" at its word, also where it is a real number of pods.
        room[room == UNLIMITED] = request.replicas
    return room


def _put(
    room: facts.Integers, nodes: facts.Integers, places: facts.Integers, candidates: filters.Candidates
) -> None:
    """Replace the room of the candidates that have a resource model."""
    if candidates.whole:
        room[places] = nodes
        return
    positions = np.searchsorted(candidates.index, places)
    inside = np.append(candidates.index, -1)[positions] == places
    room[positions[inside]] = nodes[inside]
