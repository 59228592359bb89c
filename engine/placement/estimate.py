"""Available replicas: how many more replicas of a workload fit into each candidate.

The rules of Karmada's general estimator: the scarcest requested resource, and free pods. Clusters with a
resource model count nodes by grade instead of the summary. All numbers are integers; a cluster counts at most
2**44 replicas.
"""

from typing import TYPE_CHECKING

import numpy as np

from engine.placement import capacity, encoded_columns, filters, requests

if TYPE_CHECKING:
    from engine.placement import fleet as fleets

UNLIMITED = 2**31 - 1
"""Karmada's result if there is nothing to estimate."""


def allocatable(
    request: requests.Request, candidates: filters.Candidates, fleet: "fleets.Fleet"
) -> encoded_columns.Integers:
    """Return the free replicas of each candidate, without those that already run there, as a new array."""
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
        nodes = np.minimum(models.replicas(asked), fleet.pods[models.positions])
        _put(room, nodes, models.positions, candidates)
    if fleet.reaches_sentinel:
        np.minimum(room, capacity.ROOM_MAX, out=room)
        # Karmada uses this value for "not estimated" and replaces it by the requested replicas, even if it is
        # the real number of pods.
        room[room == UNLIMITED] = request.replicas
    return room


def _put(
    room: encoded_columns.Integers,
    nodes: encoded_columns.Integers,
    places: encoded_columns.Integers,
    candidates: filters.Candidates,
) -> None:
    """Replace the free replicas of candidates with a resource model."""
    if candidates.whole:
        room[places] = nodes
        return
    positions = np.searchsorted(candidates.index, places)
    inside = np.append(candidates.index, -1)[positions] == places
    room[positions[inside]] = nodes[inside]
