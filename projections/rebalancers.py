"""Projection of rebalancers: the result for each workload of a WorkloadRebalancer.

The spec is in the objects' table; this table has the status, which belongs to the rebalancer with the stored uid.
"""

from typing import Final

import msgspec

from engine.domain import rebalancers as domain
from events import rebalance_decisions
from projections.port import Rows
from projections.working_set import WorkingSet

SCHEMA: Final = (
    "CREATE TABLE rebalancers (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, body BLOB NOT NULL);"
)


class Rebalancer(domain.Rebalancer, kw_only=True, array_like=True):
    """The status of a rebalancer with this uid; ``number`` is that of the last record that changed it."""

    uid: str
    number: int = 0


decode: Final = msgspec.json.Decoder(Rebalancer).decode


class Rebalancers(WorkingSet[int, Rebalancer]):
    """Folds decisions about rebalancers."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows, "rebalancers", decode, lambda rebalancer: (rebalancer.number,))

    def take(self, key_id: int, number: int, uid: str, data: rebalance_decisions.RebalancerDecision) -> bool:
        """Fold a decision of a valid step; return False if it is about a rebalancer with another uid than ``uid``."""
        if data.uid != uid:
            return False
        rebalancer = self.get(key_id)
        if rebalancer is None or rebalancer.uid != uid:
            rebalancer = Rebalancer(uid=uid)
        if not isinstance(data, rebalance_decisions.RebalancerExpired):
            domain.apply(rebalancer, data)
            rebalancer.number = number
            self.put(key_id, rebalancer)
        return True
