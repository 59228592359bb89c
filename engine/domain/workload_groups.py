"""Groups of workloads that share all their clusters, or none (``workloadAffinity`` of a placement)."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

import msgspec


class GroupLabel(NamedTuple):
    """The label and value that form a group; its workloads share no cluster if ``is_apart``, otherwise all clusters."""

    label: str
    value: str
    is_apart: bool


class WorkloadAffinityTerm(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True
):
    """Groups the workloads of a namespace by the value of a label."""

    group_by_label_key: str = ""


class WorkloadAffinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Forms groups of workloads that share all clusters (``affinity``) or no cluster (``anti_affinity``)."""

    affinity: WorkloadAffinityTerm | None = None
    anti_affinity: WorkloadAffinityTerm | None = None

    def groups(self, namespace: str, labels: Mapping[str, str]) -> list[GroupLabel]:
        """Return the groups of a workload with these labels; as in Karmada, objects without a namespace have none."""
        terms = ((self.affinity, False), (self.anti_affinity, True)) if namespace else ()
        return [
            GroupLabel(term.group_by_label_key, labels[term.group_by_label_key], is_apart)
            for term, is_apart in terms
            if term is not None and term.group_by_label_key in labels
        ]


class GroupRestrictions(NamedTuple):
    """Restrictions by a binding's groups: no cluster in ``apart``, only clusters in ``together`` (None: any)."""

    apart: frozenset[str] = frozenset()
    together: frozenset[str] | None = None

    def with_group(self, others: Iterable[str], *, is_apart: bool) -> "GroupRestrictions":
        """Return the restrictions with a group added, whose other bindings have the clusters ``others``."""
        clusters = frozenset(others)
        return self._replace(apart=clusters) if is_apart else self._replace(together=clusters)

    def permit(self, clusters: AbstractSet[str]) -> bool:
        """Whether a binding may get all of these clusters."""
        return not clusters & self.apart and (self.together is None or clusters <= self.together)


NO_RESTRICTIONS: Final = GroupRestrictions()


class GroupClusters:
    """Counts, per cluster, the bindings of a group.

    If ``is_apart``, no two of them may share a cluster; otherwise all of them share their clusters.
    """

    def __init__(self, members: Iterable[Collection[str]] = (), *, is_apart: bool) -> None:
        self.is_apart = is_apart
        self._counts: Counter[str] = Counter()
        self._placed = 0
        # Cached ``restricting_clusters`` of bindings without clusters: thousands may be pending, with the same result.
        self._restricting_of_new: tuple[str, ...] | None = None
        for clusters in members:
            self._counts.update(clusters)
            self._placed += bool(clusters)

    @property
    def is_empty(self) -> bool:
        """Whether no binding of the group has clusters."""
        return not self._placed

    def replace(self, before: AbstractSet[str], after: AbstractSet[str]) -> None:
        """Change the clusters of one binding from ``before`` to ``after``."""
        if before == after:
            return
        self._counts.update(after - before)
        for name in before - after:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]
        self._placed += bool(after) - bool(before)
        self._restricting_of_new = None

    def restricts(self, own: AbstractSet[str]) -> bool:
        """Whether the group restricts a binding with the clusters ``own``: another of its bindings has clusters."""
        return self._placed > bool(own)

    def restricting_clusters(self, own: AbstractSet[str]) -> tuple[str, ...]:
        """Return the clusters of the other bindings of the group, sorted by name.

        The binding with the clusters ``own`` is left out. If ``is_apart``, these are the clusters of any other binding,
        otherwise only those that all others with clusters share.
        """
        if own:
            return self._restricting(own)
        if self._restricting_of_new is None:
            self._restricting_of_new = self._restricting(own)
        return self._restricting_of_new

    def _restricting(self, own: AbstractSet[str]) -> tuple[str, ...]:
        needed = 1 if self.is_apart else self._placed - bool(own)
        if not needed:
            return ()
        counts = self._counts
        return tuple(sorted(name for name in counts if counts[name] - (name in own) >= needed))
