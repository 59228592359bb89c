"""All known clusters, as columns in name order.

A fleet is mutable: clusters are put, report, and are removed. Reports change capacity columns in place; anything else
moves the revision and throws away what was compiled from the former facts. Columns are rebuilt when they are next read.
"""

from collections.abc import Callable, Hashable
from typing import Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from engine.objects import clusters, placements
from engine.placement import capacity, compiled, facts, formers, models

CLUSTERS_MAX: Final = 2**16
"""Clusters in one fleet; sort keys keep this many bits for a cluster's place."""

COMPILED_MAX: Final = 4096
COMPILED_MIN: Final = 64
COMPILED_CELLS_MAX: Final = 2**22
"""Placements that are kept compiled, fewer for more clusters; beyond it all are forgotten and compiled when used."""

SENTINEL: Final = 2**31 - 1
"""The reference's mark for "not estimated"; a cluster with so many free pods is looked at twice (see `estimate`)."""

Fact = TypeVar("Fact", bound=Hashable)


class FleetFullError(Exception):
    """One more cluster than a fleet holds."""


class Fleet:
    """The clusters that a decision chooses from."""

    def __init__(self) -> None:
        """Start with no clusters."""
        self.revision = 0
        # Moves with everything that is said of a cluster, its capacity included.
        self.moves = 0
        self._manifests: dict[str, clusters.ClusterManifest] = {}
        self._capacities: dict[str, capacity.Capacity] = {}
        self._ordered = True
        self._forget()
        self._arrange()

    def __len__(self) -> int:
        """How many clusters are known, those that are being removed included."""
        return len(self._manifests)

    def put(self, cluster: clusters.ClusterManifest) -> None:
        """Add a cluster, or replace what is known of it.

        Raises `quantity.QuantityError` where its capacity is malformed, `FleetFullError` beyond 65,536 clusters.
        """
        name = cluster.metadata.name
        known = self._manifests.get(name)
        if known is None and len(self) >= CLUSTERS_MAX:
            msg = f"cluster {name}: a fleet holds at most {CLUSTERS_MAX} clusters; remove some first"
            raise FleetFullError(msg)
        room = capacity.capacity(cluster)
        self.moves += 1
        self._manifests[name] = cluster
        self._capacities[name] = room
        if known is None:
            self._ordered = False
        if known is not None and _same_facts(known, cluster):
            self._refill(name, room)
        else:
            self._refill(name, room)
            self._forget()

    def report(self, name: str, summary: clusters.ResourceSummary | None) -> None:
        """Take a known cluster's new capacity; nothing else is looked at again.

        Raises `KeyError` where the cluster is unknown, `quantity.QuantityError` where a quantity is malformed.
        """
        known = self._manifests[name]
        status = msgspec.structs.replace(known.status, resource_summary=summary)
        cluster = msgspec.structs.replace(known, status=status)
        room = capacity.capacity(cluster)
        self.moves += 1
        self._manifests[name] = cluster
        self._capacities[name] = room
        self._refill(name, room)

    def remove(self, name: str) -> None:
        """Forget a cluster; an unknown one is no error."""
        if self._manifests.pop(name, None) is not None:
            del self._capacities[name]
            self.moves += 1
            self._ordered = False
            self._forget()

    def get(self, name: str) -> clusters.ClusterManifest | None:
        """What is known of a cluster."""
        return self._manifests.get(name)

    def names(self) -> tuple[str, ...]:
        """All clusters in bytewise name order."""
        self._settle()
        return tuple(self.places)

    def matches(self, affinity: placements.ClusterAffinity | None, name: str) -> bool:
        """Whether a known cluster is one of those that an affinity means; no affinity means all."""
        self._settle()
        place = self.places.get(name)
        return place is not None and (affinity is None or bool(self._mask(affinity)[place]))

    def compile(self, placement: placements.Placement) -> compiled.Compiled:
        """The masks of a placement, kept until a cluster fact other than capacity changes."""
        self._settle()
        by_identity = self._by_identity.get(id(placement))
        if by_identity is not None:
            return by_identity[1]
        affordable = max(COMPILED_CELLS_MAX // max(len(self), 1), COMPILED_MIN)
        if len(self._by_identity) >= min(affordable, COMPILED_MAX):
            self._by_identity.clear()
            self._by_digest.clear()
        digest = msgspec.json.encode(placement, order="deterministic")
        masks = self._by_digest.get(digest)
        if masks is None:
            masks = self._by_digest[digest] = compiled.Compiled(placement, self)
        # The placement is kept beside its masks, so that no other object can get its identity.
        self._by_identity[id(placement)] = (placement, masks)
        return masks

    def column(self, fact: str, read: Callable[[clusters.ClusterManifest], Fact]) -> facts.Column[Fact]:
        """One fact of all clusters, coded; ``fact`` names it for as long as it holds."""
        self._settle()
        known = self._columns.get(fact)
        if known is None:
            known = self._columns[fact] = facts.Column(map(read, self._in_order()))
        return known  # pyright: ignore[reportReturnType]  # the name stands for the type of the fact

    def units(self, resource: str) -> facts.Integers | None:
        """Free units of a resource in each cluster; None where no cluster ever had any."""
        return self.pods if resource == "pods" else self._units.get(resource)

    def former(self, pairs: formers.Pairs) -> formers.Former:
        """A former result as columns over the clusters as they are arranged now."""
        self._settle()
        return self._formers.of(pairs)

    def learn(self, pairs: formers.Pairs, places: facts.Integers, replicas: facts.Integers) -> None:
        """Take the columns of a result from one who has just decided it, and let no time go between."""
        self._formers.learn(pairs, places, replicas)

    def nodes(self) -> models.Models | None:
        """The nodes of the clusters that have a resource model; None where there is none."""
        self._settle()
        if self._models is None and self._graded:
            self._models = models.Models(self._graded)
        return self._models

    def _mask(self, affinity: placements.ClusterAffinity) -> facts.Mask:
        """The clusters that an affinity means, kept as long as what is compiled."""
        known = self._masks.get(id(affinity))
        if known is not None:
            return known[1]
        if len(self._masks) >= max(COMPILED_CELLS_MAX // max(len(self), 1), COMPILED_MIN):
            self._masks.clear()
        mask = compiled.affinity_mask(affinity, self)
        # The affinity is kept beside its mask, so that no other object can get its identity.
        self._masks[id(affinity)] = (affinity, mask)
        return mask

    def _in_order(self) -> list[clusters.ClusterManifest]:
        return [self._manifests[name] for name in self.places]

    def _settle(self) -> None:
        if not self._ordered:
            self._ordered = True
            self._arrange()

    def _forget(self) -> None:
        """Throw away all that was made from facts other than capacity."""
        self.revision += 1
        self._columns: dict[str, facts.Column[Hashable]] = {}
        self._by_identity: dict[int, tuple[placements.Placement, compiled.Compiled]] = {}
        self._by_digest: dict[bytes, compiled.Compiled] = {}
        self._masks: dict[int, tuple[placements.ClusterAffinity, facts.Mask]] = {}

    def _arrange(self) -> None:
        """Build the capacity columns anew, in name order."""
        known = sorted(self._manifests)
        rooms = [self._capacities[name] for name in known]
        # Copies that stand side by side in memory: a result with thousands of names is read twice as fast.
        names = [name.encode().decode() for name in known]
        self.places = {name: place for place, name in enumerate(names)}
        self._formers = formers.Formers(self.places)
        self.name_column: npt.NDArray[np.object_] = np.array([*names, None], dtype=np.object_)[:-1]
        self.pods: facts.Integers = np.array([room.pods for room in rooms], dtype=np.int64)
        resources = sorted({resource for room in rooms for resource in room.units})
        self._units: dict[str, facts.Integers] = {
            resource: np.array([room.units.get(resource, 0) for room in rooms], dtype=np.int64)
            for resource in resources
        }
        self._graded = {place: room.grades for place, room in enumerate(rooms) if room.grades}
        self._models: models.Models | None = None
        self.reaches_sentinel = any(room.pods >= SENTINEL for room in rooms)

    def _refill(self, name: str, room: capacity.Capacity) -> None:
        """Write one cluster's room into the columns."""
        if not self._ordered:
            return
        place = self.places[name]
        self.pods[place] = room.pods
        for resource in room.units.keys() - self._units.keys():
            self._units[resource] = np.zeros(len(self), dtype=np.int64)
        for resource, column in self._units.items():
            column[place] = room.units.get(resource, 0)
        if room.grades or place in self._graded:
            self._regrade(place, room.grades)
        self.reaches_sentinel = self.reaches_sentinel or room.pods >= SENTINEL

    def _regrade(self, place: int, grades: tuple[capacity.Grade, ...]) -> None:
        """Take one cluster's nodes; the columns are made anew where they do not have a place for them."""
        if grades:
            self._graded[place] = grades
        else:
            del self._graded[place]
        if self._models is not None and not self._models.report(place, grades):
            self._models = None


def _same_facts(known: clusters.ClusterManifest, cluster: clusters.ClusterManifest) -> bool:
    return (
        known.metadata == cluster.metadata
        and known.spec == cluster.spec
        and known.status.api_enablements == cluster.status.api_enablements
    )
