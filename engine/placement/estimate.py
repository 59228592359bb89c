"""Available replicas: how many more replicas of a workload fit into each candidate.

The rules of Karmada's general estimator: the scarcest requested resource and the free pods limit the result. For
clusters with a resource model, nodes by grade are used instead of the summary. The ResourceQuotas of the workload's
namespace in a cluster limit the result, as in Karmada's scheduler-estimator. All numbers are integers, at most 2**44
per cluster.
"""

import numpy as np

from engine.placement import capacity, encoded_columns, filters, requests
from engine.placement import fleet as fleets


def allocatable(
    request: requests.Request, candidates: filters.Candidates, fleet: fleets.Fleet
) -> encoded_columns.Integers:
    """Return how many more replicas fit into each candidate, beside the running ones, as a new array."""
    if request.replicas == 0 and not request.components:
        return np.full(len(candidates.index), capacity.UNLIMITED, dtype=np.int64)
    resource_requests = request.requests or ()
    free = fleet.pods.copy() if candidates.whole else fleet.pods[candidates.index]
    for resource, amount in resource_requests:
        column = fleet.units(resource)
        if column is None:
            free.fill(0)
            break
        np.minimum(free, (column if candidates.whole else column[candidates.index]) // amount, out=free)
    # Karmada reads the models only for workloads with resource requirements; for others it counts free pods.
    models = None if request.requests is None else fleet.nodes()
    if models is not None:
        nodes = np.minimum(models.replicas(resource_requests), fleet.pods[models.positions])
        _replace_modelled(free, nodes, models.positions, candidates)
    for name, count in request.replica_limits:
        index = _candidate_index(fleet.positions.get(name), candidates)
        if index is not None:
            free[index] = min(free[index], count)
    if fleet.reaches_sentinel:
        np.minimum(free, capacity.FREE_MAX, out=free)
        # Karmada takes UNLIMITED for "not estimated", even if that is the real number of pods, and uses the
        # requested replicas instead.
        free[free == capacity.UNLIMITED] = request.replicas
    return free


def _candidate_index(position: int | None, candidates: filters.Candidates) -> int | None:
    """Return the index of a cluster among the candidates; None if it is not a candidate."""
    if position is None or candidates.whole:
        return position
    index = int(np.searchsorted(candidates.index, position))
    is_candidate = index < len(candidates.index) and candidates.index[index] == position
    return index if is_candidate else None


def _replace_modelled(
    free: encoded_columns.Integers,
    nodes: encoded_columns.Integers,
    modelled: encoded_columns.Integers,
    candidates: filters.Candidates,
) -> None:
    """In ``free``, replace the values of candidates that have a resource model by ``nodes``."""
    if candidates.whole:
        free[modelled] = nodes
        return
    positions = np.searchsorted(candidates.index, modelled)
    are_candidates = np.append(candidates.index, -1)[positions] == modelled
    free[positions[are_candidates]] = nodes[are_candidates]
