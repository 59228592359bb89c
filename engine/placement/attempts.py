"""One scheduling attempt: one affinity group, from the filters to the division of replicas.

The results of each stage are kept, because the explanation is made from them.
"""

import numpy as np

from engine.placement import (
    assign,
    compiled,
    decisions,
    encoded_columns,
    failures,
    filters,
    requests,
    scheduling_context,
    spread,
)
from engine.placement import fleet as fleets


class Attempt:
    """The results of trying one affinity group; attributes of stages that were not reached stay empty."""

    def __init__(
        self,
        request: requests.Request,
        masks: compiled.Compiled,
        group: int,
        fleet: fleets.Fleet,
        free: encoded_columns.Integers | None = None,
    ) -> None:
        """Filter, select and divide; ``error`` is the reason of a failure, or None.

        ``free`` overrides the free replicas of the candidates, which otherwise follow from the clusters'
        reports.
        """
        self.request = request
        self.group = masks.groups[group]
        self.context: scheduling_context.Context | None = None
        self.chosen: encoded_columns.Integers | None = None
        self.shares: list[assign.Share] = []
        self.result: decisions.Chosen | None = None
        self.error: failures.PlacementError | None = None
        resource = request.resource
        pool = masks.pool(group, resource.api_version, resource.kind, overflowing=request.is_workload)
        self.candidates = filters.candidates(pool, request, fleet)
        try:
            self.result = self._run(masks, fleet, free)
        except failures.PlacementError as error:
            self.error = error

    def _run(
        self, masks: compiled.Compiled, fleet: fleets.Fleet, free: encoded_columns.Integers | None
    ) -> decisions.Chosen:
        if not len(self.candidates.index):
            raise failures.NoClusterFitError(filters.fit_message(len(fleet), self.candidates.excluded))
        context = self.context = scheduling_context.Context(
            self.request, masks, self.group, self.candidates, fleet, free
        )
        chosen = self.chosen = spread.select(context)
        if chosen is not None and not len(chosen):
            msg = "failed to assign replicas: no clusters available to schedule"
            raise failures.PlacementError(msg)
        if not self.request.is_workload or self.request.components > 1:
            return _result(context, None if chosen is None else np.sort(chosen), 0)
        self.shares = assign.assign(context, chosen)
        is_duplicated = context.tiers is None and masks.strategy == compiled.Strategy.DUPLICATED
        if is_duplicated and chosen is None and self.request.replicas:
            return _result(context, None, self.request.replicas)
        replicas = self.shares[0].replicas if self.shares else np.zeros(len(context.index), dtype=np.int64)
        for share in self.shares[1:]:
            replicas = replicas + share.replicas
        if self.request.empty_workload_propagation:
            positions = None if chosen is None else np.sort(chosen)
        else:
            positions = np.flatnonzero(replicas != 0)
        return _result(context, positions, replicas)


def _result(
    context: scheduling_context.Context,
    positions: encoded_columns.Integers | None,
    replicas: encoded_columns.Integers | int,
) -> decisions.Chosen:
    """Return the chosen positions (None: all) as columns, with the free replicas if these were estimated."""
    free = context.free if context.request.replicas else None
    if positions is None or len(positions) == len(context.index):
        cache = context.candidates.pool.cache if context.index is context.candidates.pool.index else None
        return decisions.Chosen(context.names, context.index, replicas, free, cache=cache)
    return decisions.Chosen(
        context.names,
        context.index[positions],
        replicas if isinstance(replicas, int) else replicas[positions],
        free,
        positions=positions,
    )
