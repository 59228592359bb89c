"""The placements of a shard, decoded once and shared by all bindings that have them."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from engine.deciders import evicting
from engine.objects import placements
from engine.objects.clusters import Taint

_DECODER: Final = msgspec.json.Decoder(placements.Placement)
_DEADLINES_MAX: Final = 65_536
"""Deadlines, by placement and cluster, that are kept; beyond it all are forgotten."""


class Placements:
    """Placements by their digest in the shard's table."""

    def __init__(self, table: Mapping[str, msgspec.Raw]) -> None:
        self._table = table
        self._decoded: dict[str, placements.Placement] = {}
        self._deadlines: dict[tuple[str, str], tuple[Sequence[Taint], int | None]] = {}

    def get(self, digest: str) -> placements.Placement:
        """The placement with this digest; raises KeyError where the table has none."""
        found = self._decoded.get(digest)
        if found is None:
            found = self._decoded[digest] = _DECODER.decode(self._table[digest])
        return found

    def deadline_ms(self, digest: str, cluster: str, taints: Sequence[Taint]) -> int | None:
        """When what has this placement has to leave a cluster with these taints; see ``evicting.deadline_ms``."""
        known = self._deadlines.get((digest, cluster))
        if known is not None and known[0] is taints:
            return known[1]
        if len(self._deadlines) >= _DEADLINES_MAX:
            self._deadlines.clear()
        due_ms = evicting.deadline_ms(taints, self.get(digest).cluster_tolerations)
        self._deadlines[digest, cluster] = (taints, due_ms)
        return due_ms

    def affinity(self, digest: str, group: str) -> placements.ClusterAffinity | None:
        """The affinity that a cluster is tested against; with groups that of the observed one, None for all."""
        placement = self.get(digest)
        if placement.cluster_affinity is not None:
            return placement.cluster_affinity
        for term in placement.cluster_affinities:
            if term.affinity_name == group:
                return term
        return None
