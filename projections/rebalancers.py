"""Projection of rebalancers: the result for each workload of a WorkloadRebalancer.

The spec is in the objects' table; this one holds the status, for one uid.
"""

from typing import Final

import msgspec
from msgspec import Struct

from events import decisions, shapes
from projections.port import Row, Rows
from projections.working_set import WorkingSet

SCHEMA: Final = (
    "CREATE TABLE rebalancers (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, body BLOB NOT NULL);"
)


class Observed(Struct, frozen=True, array_like=True, gc=False):
    """A workload and its result; ``result`` is empty until there is one."""

    workload: shapes.WorkloadRef
    result: str = ""
    reason: str = ""


class Rebalancer(Struct, array_like=True):
    """The status of a rebalancer; ``finish_ms`` is 0 until it finishes for the first time."""

    uid: str
    number: int = 0
    observed_generation: int = 0
    finish_ms: int = 0
    observed: dict[str, Observed] = {}


_encode = msgspec.json.Encoder(order="deterministic").encode
decode: Final = msgspec.json.Decoder(Rebalancer).decode


class Rebalancers:
    """Folds decisions about rebalancers."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._documents: WorkingSet[Rebalancer] = WorkingSet(self._load)

    def get(self, key_id: int) -> Rebalancer | None:
        """Return the current status; callers must not modify it."""
        return self._documents.get(key_id)

    def take(self, key_id: int, number: int, uid: str, data: shapes.Event) -> bool:
        """Fold a counted decision; return False if it is not about the rebalancer that has this ``uid`` now."""
        rebalancer = self._documents.get(key_id)
        if rebalancer is None or rebalancer.uid != uid:
            rebalancer = Rebalancer(uid)
        match data:
            case decisions.RebalanceStarted() if data.uid == uid:
                _start(rebalancer, data)
            case decisions.WorkloadRebalanced() if data.uid == uid:
                observed = Observed(data.workload, data.result, data.reason)
                rebalancer.observed[data.workload.sort_key] = observed
            case decisions.RebalanceFinished() if data.uid == uid:
                rebalancer.finish_ms = data.finish_ms
            case decisions.RebalancerExpired() if data.uid == uid:
                return True
            case _:
                return False
        rebalancer.number = number
        self._documents.put(key_id, rebalancer)
        return True

    def remove(self, key_id: int) -> None:
        self._documents.put(key_id, None)

    def flush(self, rows: Rows) -> None:
        deleted: list[Row] = []
        stored: list[Row] = []
        for key_id, rebalancer in self._documents.changed():
            if rebalancer is None:
                deleted.append((key_id,))
            else:
                stored.append((key_id, rebalancer.number, _encode(rebalancer)))
        rows.write("DELETE FROM rebalancers WHERE id = ?", deleted)
        rows.write("INSERT OR REPLACE INTO rebalancers VALUES (?, ?, ?)", stored)

    def _load(self, key_id: int) -> Rebalancer | None:
        rows = self._rows.select("SELECT body FROM rebalancers WHERE id = ?", (key_id,))
        return decode(rows[0][0]) if rows else None


def _start(rebalancer: Rebalancer, data: decisions.RebalanceStarted) -> None:
    rebalancer.observed_generation = data.generation
    for ref in data.dropped:
        rebalancer.observed.pop(ref.sort_key, None)
    for ref in data.asked:
        rebalancer.observed[ref.sort_key] = Observed(ref)
