"""Placements of a shard, decoded once and shared by all bindings that use them."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from engine.deciders import eviction_rules
from engine.deciders.state import Binding
from engine.objects import placements
from engine.objects.clusters import Taint

_DECODER: Final = msgspec.json.Decoder(placements.Placement)
_DEADLINES_MAX: Final = 65_536
"""Maximum number of cached deadlines; the cache is cleared when it is full."""
_COUNT_MIN: Final = 1_024
"""Unused placements are kept while the table has at most this many placements."""


class Placements:
    """Placements by their digest in ``ShardState.placements``."""

    def __init__(self, table: dict[str, msgspec.Raw]) -> None:
        self._table = table
        self._decoded: dict[str, placements.Placement] = {}
        self._deadlines: dict[tuple[str, str], tuple[Sequence[Taint], int | None]] = {}

    def get(self, digest: str) -> placements.Placement:
        """Return the placement with this digest; raises KeyError if it does not exist."""
        placement = self._decoded.get(digest)
        if placement is None:
            placement = self._decoded[digest] = _DECODER.decode(self._table[digest])
        return placement

    def drop_unused(self, bindings: Iterable[Binding], kept: int) -> int:
        """Drop the placements that no binding refers to, once the table has doubled since the last drop.

        ``kept`` is the result of the last call: the number of placements left by the last drop.
        """
        if len(self._table) <= max(_COUNT_MIN, 2 * kept):
            return kept
        used: set[str] = set()
        for binding in bindings:
            used.add(binding.applied)
            if binding.last_claim is not None:
                used.add(binding.last_claim.placement)
        for digest in self._table.keys() - used:
            del self._table[digest]
            self._decoded.pop(digest, None)
        return len(self._table)

    def deadline_ms(self, digest: str, cluster: str, taints: Sequence[Taint]) -> int | None:
        """Return when a binding with this placement must leave a cluster with these taints; None for never."""
        cached = self._deadlines.get((digest, cluster))
        # Identity is enough, and cheap: taint tuples are never changed, and the entry keeps its tuple alive.
        if cached is not None and cached[0] is taints:
            return cached[1]
        if len(self._deadlines) >= _DEADLINES_MAX:
            self._deadlines.clear()
        due_ms = eviction_rules.deadline_ms(taints, self.get(digest).cluster_tolerations)
        self._deadlines[digest, cluster] = (taints, due_ms)
        return due_ms

    def affinity(self, digest: str, group: str) -> placements.ClusterAffinity | None:
        """Return the affinity that clusters must match: the only one, or that named ``group``; None matches all."""
        placement = self.get(digest)
        if placement.cluster_affinity is not None:
            return placement.cluster_affinity
        for term in placement.cluster_affinities:
            if term.affinity_name == group:
                return term
        return None
