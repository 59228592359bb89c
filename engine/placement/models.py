"""Clusters with a resource model, as columns: how many nodes of which grade, and what a node of each kind holds.

Few kinds of nodes occur in a fleet, for clusters share their models: how many replicas fit into a node is worked out
once for each kind, then counted for all nodes of all clusters at once.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from engine.placement import capacity, facts

NODE_PODS: Final = 110
"""Pods that a node takes, by the reference scheduler's resource models."""

_NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage", "storage", "pods"})

_Kind = tuple[tuple[str, int], ...]


class Models:
    """The nodes of all clusters that have a resource model.

    ``places`` are these clusters' places in the fleet, ascending. Counts and kinds have a row for each grade, the
    lowest first, and a column for each of these clusters; a cluster with fewer grades has no nodes in the last rows.
    """

    def __init__(self, graded: Mapping[int, tuple[capacity.Grade, ...]]) -> None:
        """Code the kinds of nodes by first appearance; ``graded`` has the grades of clusters by place."""
        ordered = sorted(graded)
        self.places: facts.Integers = np.array(ordered, dtype=np.int64)
        self._column = {place: column for column, place in enumerate(ordered)}
        rows = max(len(grades) for grades in graded.values())
        # So few that all nodes of a cluster together never overflow a column; still more than count anywhere.
        self._count_max = capacity.UNITS_MAX // (NODE_PODS * rows)
        self._counts: facts.Integers = np.zeros((rows, len(ordered)), dtype=np.int64)
        self._codes: facts.Integers = np.zeros((rows, len(ordered)), dtype=np.int64)
        known: dict[_Kind, int] = {}
        for column, place in enumerate(ordered):
            grades = graded[place]
            self._counts[: len(grades), column] = self._counted(grades)
            self._codes[: len(grades), column] = [
                known.setdefault(_kind(each), len(known)) for each in grades
            ]
        self._kinds = list(known)
        holds = [dict(kind) for kind in known]
        self._holds: dict[str, facts.Integers] = {
            resource: np.array([held.get(resource, 0) for held in holds], dtype=np.int64)
            for resource in sorted({resource for held in holds for resource in held})
        }

    def report(self, place: int, grades: tuple[capacity.Grade, ...]) -> bool:
        """Take one cluster's new counts; False where the columns do not have a place for its kinds of nodes."""
        column = self._column.get(place)
        if column is None or not grades or len(grades) > len(self._counts):
            return False
        codes: list[int] = self._codes[: len(grades), column].tolist()
        if [self._kinds[code] for code in codes] != [_kind(each) for each in grades]:
            return False
        self._counts[:, column] = 0
        self._counts[: len(grades), column] = self._counted(grades)
        return True

    def replicas(self, requests: Sequence[tuple[str, int]]) -> facts.Integers:
        """Replicas that all nodes of each of these clusters take together; pods of the cluster are not looked at."""
        each = np.full(len(self._kinds), NODE_PODS, dtype=np.int64)
        for resource, amount in requests:
            if resource not in _NATIVE and not is_extended(resource):
                continue
            held = self._holds.get(resource)
            if held is None:
                each.fill(0)
                break
            np.minimum(each, held // amount, out=each)
        fitting = each[self._codes]
        fitting *= self._counts
        return fitting.sum(axis=0)

    def _counted(self, grades: tuple[capacity.Grade, ...]) -> list[int]:
        return [min(each.count, self._count_max) for each in grades]


def _kind(grade: capacity.Grade) -> _Kind:
    return tuple(sorted(grade.holds.items()))


def is_extended(resource: str) -> bool:
    """Whether a resource is named by a vendor's domain, such as nvidia.com/gpu."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")
