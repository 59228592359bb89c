"""All known clusters, as columns in name order.

A fleet is mutable. Reports change capacity columns in place; every other change increases the revision and
drops what was compiled from earlier facts. Columns are rebuilt at their next use.
"""

from collections.abc import Callable, Hashable
from typing import Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from engine.objects import clusters, placements
from engine.placement import capacity, compiled, encoded_columns, previous_assignment, resource_models

CLUSTERS_MAX: Final = 2**16
"""Most clusters in one fleet; sort keys have this many bits for a cluster's position."""

COMPILED_MAX: Final = 4096
COMPILED_MIN: Final = 64
COMPILED_CELLS_MAX: Final = 2**22
"""Most compiled placements, fewer for large fleets. Beyond it the cache is cleared, and placements compiled again."""

SENTINEL: Final = 2**31 - 1
"""Karmada's mark for "not estimated"; clusters with that many free pods need a correction in `estimate`."""

Fact = TypeVar("Fact", bound=Hashable)


class FleetFullError(Exception):
    """The fleet already has ``CLUSTERS_MAX`` clusters."""


class Fleet:
    """The clusters from which a decision chooses."""

    def __init__(self) -> None:
        self.revision = 0
        # Increases with every change of a cluster, including its capacity.
        self.moves = 0
        self._manifests: dict[str, clusters.ClusterManifest] = {}
        self._capacities: dict[str, capacity.Capacity] = {}
        self._ordered = True
        self._forget()
        self._arrange()

    def __len__(self) -> int:
        return len(self._manifests)

    def put(self, cluster: clusters.ClusterManifest) -> None:
        """Add or replace a cluster.

        Raises `quantity.QuantityError` if its capacity is malformed, `FleetFullError` beyond 65,536 clusters.
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
        """Set a known cluster's capacity; compiled placements stay valid.

        Raises `KeyError` if the cluster is unknown, `quantity.QuantityError` if a quantity is malformed.
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
        """Remove a cluster; does nothing if it is unknown."""
        if self._manifests.pop(name, None) is not None:
            del self._capacities[name]
            self.moves += 1
            self._ordered = False
            self._forget()

    def get(self, name: str) -> clusters.ClusterManifest | None:
        """Return a cluster; None if it is unknown."""
        return self._manifests.get(name)

    def names(self) -> tuple[str, ...]:
        """Return all clusters in bytewise name order."""
        self._settle()
        return tuple(self.positions)

    def matches(self, affinity: placements.ClusterAffinity | None, name: str) -> bool:
        """Return whether a known cluster is selected by an affinity; no affinity selects all."""
        self._settle()
        place = self.positions.get(name)
        return place is not None and (affinity is None or bool(self._mask(affinity)[place]))

    def compile(self, placement: placements.Placement) -> compiled.Compiled:
        """Return the masks of a placement, cached until a cluster fact other than capacity changes."""
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
        # Keep a reference to the placement: the cache is keyed by id(), which CPython reuses after
        # collection.
        self._by_identity[id(placement)] = (placement, masks)
        return masks

    def column(
        self, fact: str, read: Callable[[clusters.ClusterManifest], Fact]
    ) -> encoded_columns.Column[Fact]:
        """Return one fact of all clusters as a column, cached under the name ``fact``."""
        self._settle()
        known = self._columns.get(fact)
        if known is None:
            known = self._columns[fact] = encoded_columns.Column(map(read, self._in_order()))
        return known  # pyright: ignore[reportReturnType]  # the name stands for the type of the fact

    def units(self, resource: str) -> encoded_columns.Integers | None:
        """Return the free units of a resource in each cluster; None if no cluster reports it."""
        return self.pods if resource == "pods" else self._units.get(resource)

    def previous(self, pairs: previous_assignment.Pairs) -> previous_assignment.PreviousAssignment:
        """Return a previous assignment as columns in the current order of clusters."""
        self._settle()
        return self._previous_assignments.of(pairs)

    def learn(
        self,
        pairs: previous_assignment.Pairs,
        places: encoded_columns.Integers,
        replicas: encoded_columns.Integers,
    ) -> None:
        """Cache the columns of a new result; call it before the fleet changes, as ``places`` are current positions."""
        self._previous_assignments.learn(pairs, places, replicas)

    def nodes(self) -> resource_models.Models | None:
        """Return the nodes of all clusters with a resource model; None if no cluster has one."""
        self._settle()
        if self._models is None and self._graded:
            self._models = resource_models.Models(self._graded)
        return self._models

    def _mask(self, affinity: placements.ClusterAffinity) -> encoded_columns.Mask:
        """The mask of an affinity, cached as long as compiled placements."""
        known = self._masks.get(id(affinity))
        if known is not None:
            return known[1]
        if len(self._masks) >= max(COMPILED_CELLS_MAX // max(len(self), 1), COMPILED_MIN):
            self._masks.clear()
        mask = compiled.affinity_mask(affinity, self)
        # Keep a reference to the affinity: the cache is keyed by id(), which CPython reuses after collection.
        self._masks[id(affinity)] = (affinity, mask)
        return mask

    def _in_order(self) -> list[clusters.ClusterManifest]:
        return [self._manifests[name] for name in self.positions]

    def _settle(self) -> None:
        if not self._ordered:
            self._ordered = True
            self._arrange()

    def _forget(self) -> None:
        """Drop everything computed from facts other than capacity."""
        self.revision += 1
        self._columns: dict[str, encoded_columns.Column[Hashable]] = {}
        self._by_identity: dict[int, tuple[placements.Placement, compiled.Compiled]] = {}
        self._by_digest: dict[bytes, compiled.Compiled] = {}
        self._masks: dict[int, tuple[placements.ClusterAffinity, encoded_columns.Mask]] = {}

    def _arrange(self) -> None:
        """Rebuild the capacity columns in name order."""
        known = sorted(self._manifests)
        rooms = [self._capacities[name] for name in known]
        # New strings, allocated one after another: reading thousands of names is twice as fast from adjacent
        # memory.
        names = [name.encode().decode() for name in known]
        self.positions = {name: place for place, name in enumerate(names)}
        self._previous_assignments = previous_assignment.PreviousAssignments(self.positions)
        self.name_column: npt.NDArray[np.object_] = np.array([*names, None], dtype=np.object_)[:-1]
        self.pods: encoded_columns.Integers = np.array([room.pods for room in rooms], dtype=np.int64)
        resources = sorted({resource for room in rooms for resource in room.units})
        self._units: dict[str, encoded_columns.Integers] = {
            resource: np.array([room.units.get(resource, 0) for room in rooms], dtype=np.int64)
            for resource in resources
        }
        self._graded = {place: room.grades for place, room in enumerate(rooms) if room.grades}
        self._models: resource_models.Models | None = None
        self.reaches_sentinel = any(room.pods >= SENTINEL for room in rooms)

    def _refill(self, name: str, room: capacity.Capacity) -> None:
        """Write one cluster's capacity into the columns."""
        # The columns are rebuilt at their next use anyway.
        if not self._ordered:
            return
        place = self.positions[name]
        self.pods[place] = room.pods
        for resource in room.units.keys() - self._units.keys():
            self._units[resource] = np.zeros(len(self), dtype=np.int64)
        for resource, column in self._units.items():
            column[place] = room.units.get(resource, 0)
        if room.grades or place in self._graded:
            self._regrade(place, room.grades)
        self.reaches_sentinel = self.reaches_sentinel or room.pods >= SENTINEL

    def _regrade(self, place: int, grades: tuple[capacity.Grade, ...]) -> None:
        """Set one cluster's nodes; drop the columns if its grades do not fit into them."""
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
