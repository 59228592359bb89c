"""The placements of a shard, decoded once and shared by all bindings that have them."""

from collections.abc import Mapping
from typing import Final

import msgspec

from engine.objects import placements

_DECODER: Final = msgspec.json.Decoder(placements.Placement)


class Placements:
    """Placements by their digest in the shard's table."""

    def __init__(self, table: Mapping[str, msgspec.Raw]) -> None:
        self._table = table
        self._decoded: dict[str, placements.Placement] = {}

    def get(self, digest: str) -> placements.Placement:
        """The placement with this digest; raises KeyError where the table has none."""
        found = self._decoded.get(digest)
        if found is None:
            found = self._decoded[digest] = _DECODER.decode(self._table[digest])
        return found

    def affinity(self, digest: str, group: str) -> placements.ClusterAffinity | None:
        """The affinity that a cluster is tested against; with groups that of the observed one, None for all."""
        placement = self.get(digest)
        if placement.cluster_affinity is not None:
            return placement.cluster_affinity
        for term in placement.cluster_affinities:
            if term.affinity_name == group:
                return term
        return None
