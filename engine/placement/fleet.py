"""All known clusters, as columns in name order.

A fleet is mutable. Reports change capacity columns in place; every other change increases the revision and
drops what was compiled from earlier facts. Columns are rebuilt at their next use.
"""

from collections.abc import Callable, Hashable
from typing import Final, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from engine.kubeapi.values import quantity
from engine.objects import clusters, placements
from engine.placement import capacity, compiled, encoded_columns, previous_assignment, resource_models

CLUSTERS_MAX: Final = 2**16
"""Maximum number of clusters in one fleet: sort keys have 16 bits for a cluster's position."""

COMPILED_MAX: Final = 4096
COMPILED_MIN: Final = 64
COMPILED_CELLS_MAX: Final = 2**22
"""The cache of compiled placements is cleared when (number of placements) * (number of clusters) reaches this limit.

It is also cleared at ``COMPILED_MAX`` placements, and never with fewer than ``COMPILED_MIN``.
"""

Fact = TypeVar("Fact", bound=Hashable)


class FleetFullError(Exception):
    """The fleet already has ``CLUSTERS_MAX`` clusters."""


class Fleet:
    """The clusters from which a decision chooses."""

    def __init__(self) -> None:
        self.revision = 0
        # Increases with every change of a cluster, including its capacity.
        self.changes = 0
        self._manifests: dict[str, clusters.ClusterManifest] = {}
        self._capacities: dict[str, capacity.Capacity] = {}
        self._ordered = True
        self._drop_compiled()
        self._sort_columns()

    def __len__(self) -> int:
        return len(self._manifests)

    def put(self, cluster: clusters.ClusterManifest) -> None:
        """Add or replace a cluster.

        Raises `quantity.QuantityError` if its capacity is malformed, `FleetFullError` beyond 65,536 clusters.
        """
        name = cluster.metadata.name
        previous = self._manifests.get(name)
        if previous is None and len(self) >= CLUSTERS_MAX:
            msg = f"cluster {name}: a fleet holds at most {CLUSTERS_MAX} clusters; remove some first"
            raise FleetFullError(msg)
        self._store(name, cluster)
        if previous is None or not _same_facts(previous, cluster):
            self._drop_compiled()

    def report(self, name: str, summary: clusters.ResourceSummary | None) -> None:
        """Set a known cluster's capacity; compiled placements stay valid.

        Raises `KeyError` if the cluster is unknown, `quantity.QuantityError` if a quantity is malformed.
        """
        previous = self._manifests[name]
        status = msgspec.structs.replace(previous.status, resource_summary=summary)
        self._store(name, msgspec.structs.replace(previous, status=status))

    def remove(self, name: str) -> None:
        """Remove a cluster; does nothing if it is unknown."""
        if self._manifests.pop(name, None) is not None:
            del self._capacities[name]
            self.changes += 1
            self._ordered = False
            self._drop_compiled()

    def get(self, name: str) -> clusters.ClusterManifest | None:
        """Return a cluster; None if it is unknown."""
        return self._manifests.get(name)

    def names(self) -> tuple[str, ...]:
        """Return all clusters in bytewise name order."""
        self._ensure_sorted()
        return tuple(self.positions)

    def matches(self, affinity: placements.ClusterAffinity | None, name: str) -> bool:
        """Return whether a known cluster is selected by an affinity; no affinity selects all."""
        self._ensure_sorted()
        position = self.positions.get(name)
        return position is not None and (affinity is None or bool(self._mask(affinity)[position]))

    def compile(self, placement: placements.Placement) -> compiled.Compiled:
        """Return the masks of a placement, cached until a cluster fact other than capacity changes."""
        self._ensure_sorted()
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
        self._ensure_sorted()
        column = self._columns.get(fact)
        if column is None:
            column = self._columns[fact] = encoded_columns.Column(map(read, self._in_order()))
        return column  # pyright: ignore[reportReturnType]  # a name has one type of values

    def units(self, resource: str) -> encoded_columns.Integers | None:
        """Return the free units of a resource in each cluster; None if no cluster reports it."""
        return self.pods if resource == quantity.PODS else self._units.get(resource)

    def previous(self, pairs: previous_assignment.Pairs) -> previous_assignment.PreviousAssignment:
        """Return a previous assignment as columns in the current order of clusters."""
        self._ensure_sorted()
        return self._previous_assignments.columns(pairs)

    def cache_columns(
        self,
        pairs: previous_assignment.Pairs,
        positions: encoded_columns.Integers,
        replicas: encoded_columns.Integers,
    ) -> None:
        """Cache the columns of a new assignment; call it before the fleet changes, since a change moves positions."""
        self._previous_assignments.cache_columns(pairs, positions, replicas)

    def nodes(self) -> resource_models.Models | None:
        """Return the nodes of all clusters with a resource model; None if no cluster has one."""
        self._ensure_sorted()
        if self._models is None and self._graded:
            self._models = resource_models.Models(self._graded)
        return self._models

    def _mask(self, affinity: placements.ClusterAffinity) -> encoded_columns.Mask:
        """The mask of the clusters that an affinity selects; cached until a cluster changes in more than capacity."""
        cached = self._masks.get(id(affinity))
        if cached is not None:
            return cached[1]
        if len(self._masks) >= max(COMPILED_CELLS_MAX // max(len(self), 1), COMPILED_MIN):
            self._masks.clear()
        mask = compiled.affinity_mask(affinity, self)
        # Keep a reference to the affinity: the cache is keyed by id(), which CPython reuses after collection.
        self._masks[id(affinity)] = (affinity, mask)
        return mask

    def _in_order(self) -> list[clusters.ClusterManifest]:
        return [self._manifests[name] for name in self.positions]

    def _ensure_sorted(self) -> None:
        if not self._ordered:
            self._ordered = True
            self._sort_columns()

    def _drop_compiled(self) -> None:
        """Drop everything computed from facts other than capacity."""
        self.revision += 1
        self._columns: dict[str, encoded_columns.Column[Hashable]] = {}
        self._by_identity: dict[int, tuple[placements.Placement, compiled.Compiled]] = {}
        self._by_digest: dict[bytes, compiled.Compiled] = {}
        self._masks: dict[int, tuple[placements.ClusterAffinity, encoded_columns.Mask]] = {}

    def _sort_columns(self) -> None:
        """Rebuild the capacity columns in name order."""
        ordered = sorted(self._manifests)
        capacities = [self._capacities[name] for name in ordered]
        # New strings, allocated one after another: reading thousands of names is twice as fast from adjacent
        # memory.
        names = [name.encode().decode() for name in ordered]
        self.positions = {name: position for position, name in enumerate(names)}
        self._previous_assignments = previous_assignment.PreviousAssignments(self.positions)
        self.name_column: npt.NDArray[np.object_] = np.array([*names, None], dtype=np.object_)[:-1]
        self.pods: encoded_columns.Integers = np.array(
            [free_capacity.pods for free_capacity in capacities], dtype=np.int64
        )
        resources = sorted({resource for free_capacity in capacities for resource in free_capacity.units})
        self._units: dict[str, encoded_columns.Integers] = {
            resource: np.array(
                [free_capacity.units.get(resource, 0) for free_capacity in capacities], dtype=np.int64
            )
            for resource in resources
        }
        self._graded = {
            position: free_capacity.grades
            for position, free_capacity in enumerate(capacities)
            if free_capacity.grades
        }
        self._models: resource_models.Models | None = None
        # UNLIMITED also means "not estimated": if a cluster really has so many free pods, `estimate` corrects its
        # result.
        self.reaches_sentinel = any(free_capacity.pods >= capacity.UNLIMITED for free_capacity in capacities)

    def _store(self, name: str, cluster: clusters.ClusterManifest) -> None:
        free_capacity = capacity.capacity(cluster)
        self.changes += 1
        self._ordered = self._ordered and name in self._manifests
        self._manifests[name] = cluster
        self._capacities[name] = free_capacity
        self._refill(name, free_capacity)

    def _refill(self, name: str, free_capacity: capacity.Capacity) -> None:
        """Write one cluster's capacity into the columns."""
        # The columns are rebuilt at their next use anyway.
        if not self._ordered:
            return
        position = self.positions[name]
        self.pods[position] = free_capacity.pods
        for resource in free_capacity.units.keys() - self._units.keys():
            self._units[resource] = np.zeros(len(self), dtype=np.int64)
        for resource, column in self._units.items():
            column[position] = free_capacity.units.get(resource, 0)
        if free_capacity.grades or position in self._graded:
            self._regrade(position, free_capacity.grades)
        self.reaches_sentinel = self.reaches_sentinel or free_capacity.pods >= capacity.UNLIMITED

    def _regrade(self, position: int, grades: tuple[capacity.Grade, ...]) -> None:
        """Set one cluster's nodes; drop the columns of nodes if they were built for other grades."""
        if grades:
            self._graded[position] = grades
        else:
            del self._graded[position]
        if self._models is not None and not self._models.report(position, grades):
            self._models = None


def _same_facts(previous: clusters.ClusterManifest, cluster: clusters.ClusterManifest) -> bool:
    return (
        previous.metadata == cluster.metadata
        and previous.spec == cluster.spec
        and previous.status.api_enablements == cluster.status.api_enablements
    )
