"""Clusters with a resource model, as columns: free nodes by grade, and the capacity of each kind of node.

A fleet has few kinds of nodes, because clusters share their models: how many replicas fit into a node is
computed once per kind, then multiplied for all nodes of all clusters at once.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from engine.placement import capacity, encoded_columns

NODE_PODS: Final = 110
"""Pods per node in the resource models of Karmada's scheduler."""

_NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage", "storage", "pods"})

_Kind = tuple[tuple[str, int], ...]


class Models:
    """The nodes of all clusters with a resource model.

    ``positions`` are these clusters' fleet positions, ascending. Counts and kinds have one row per grade, lowest
    first, and one column per cluster; a cluster with fewer grades has no nodes in the last rows.
    """

    def __init__(self, graded: Mapping[int, tuple[capacity.Grade, ...]]) -> None:
        """Number the kinds of nodes as they first appear; ``graded`` maps fleet positions to grades."""
        ordered = sorted(graded)
        self.positions: encoded_columns.Integers = np.array(ordered, dtype=np.int64)
        self._column = {position: column for column, position in enumerate(ordered)}
        rows = max(len(grades) for grades in graded.values())
        # Bound the counts so that the sum over a cluster's nodes cannot overflow int64; more would not matter
        # anyway.
        self._count_max = capacity.UNITS_MAX // (NODE_PODS * rows)
        self._counts: encoded_columns.Integers = np.zeros((rows, len(ordered)), dtype=np.int64)
        self._codes: encoded_columns.Integers = np.zeros((rows, len(ordered)), dtype=np.int64)
        code_of: dict[_Kind, int] = {}
        for column, position in enumerate(ordered):
            grades = graded[position]
            self._counts[: len(grades), column] = self._bounded_counts(grades)
            self._codes[: len(grades), column] = [
                code_of.setdefault(_kind(grade), len(code_of)) for grade in grades
            ]
        self._kinds = list(code_of)
        holds = [dict(kind) for kind in code_of]
        self._holds: dict[str, encoded_columns.Integers] = {
            resource: np.array([node.get(resource, 0) for node in holds], dtype=np.int64)
            for resource in sorted({resource for node in holds for resource in node})
        }

    def report(self, position: int, grades: tuple[capacity.Grade, ...]) -> bool:
        """Set a cluster's counts of free nodes; return False and set nothing if its columns have other grades."""
        column = self._column.get(position)
        if column is None or not grades or len(grades) > len(self._counts):
            return False
        codes: list[int] = self._codes[: len(grades), column].tolist()
        if [self._kinds[code] for code in codes] != [_kind(grade) for grade in grades]:
            return False
        self._counts[:, column] = 0
        self._counts[: len(grades), column] = self._bounded_counts(grades)
        return True

    def replicas(self, requests: Sequence[tuple[str, int]]) -> encoded_columns.Integers:
        """Return how many replicas the nodes of each cluster hold together, ignoring the cluster's free pods."""
        per_node = np.full(len(self._kinds), NODE_PODS, dtype=np.int64)
        for resource, amount in requests:
            if resource not in _NATIVE and not is_extended(resource):
                continue
            units = self._holds.get(resource)
            if units is None:
                per_node.fill(0)
                break
            np.minimum(per_node, units // amount, out=per_node)
        per_grade = per_node[self._codes]
        per_grade *= self._counts
        return per_grade.sum(axis=0)

    def _bounded_counts(self, grades: tuple[capacity.Grade, ...]) -> list[int]:
        return [min(grade.count, self._count_max) for grade in grades]


def _kind(grade: capacity.Grade) -> _Kind:
    return tuple(sorted(grade.holds.items()))


def is_extended(resource: str) -> bool:
    """Return whether a resource has a vendor's domain, such as nvidia.com/gpu."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")
