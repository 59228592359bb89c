"""The clusters of each workload group (``spec.workloadAffinityGroups``) of an observed control plane. Pure.

As in Karmada's scheduler, a ResourceBinding belongs to each group that its spec names, even if it is suspended, is
being deleted or names another scheduler. Groups with equal names in different namespaces are different groups.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

import msgspec

from engine.domain.workload_groups import NO_RESTRICTIONS, GroupClusters, GroupRestrictions
from engine.observer.observed_bindings import ObservedBinding
from engine.placement import requests

_Name: TypeAlias = tuple[str, str]
"""Namespace and name of a binding."""

_NONE: Final[frozenset[str]] = frozenset()
_CHANGES_MAX: Final = 256
"""Maximum number of newest changes that ``earlier_restrictions`` can undo."""


class _Group(NamedTuple):
    namespace: str
    text: str
    is_apart: bool


class _Member(NamedTuple):
    groups: tuple[_Group, ...]
    clusters: frozenset[str]


class GroupIndex:
    """Index of the clusters of each group. A change takes time in proportion to the clusters of the changed binding."""

    def __init__(self) -> None:
        self._members: dict[_Name, _Member] = {}
        self._groups: dict[_Group, GroupClusters] = {}
        self._undo: deque[tuple[_Name, _Member | None]] = deque(maxlen=_CHANGES_MAX)
        self.changes = 0
        """The number of changes of groups so far."""

    def put(self, binding: ObservedBinding, clusters: Iterable[str] | None = None) -> None:
        """Add or replace a binding; ``clusters`` are those of a new decision that the binding does not contain yet."""
        groups = _groups_of(binding)
        placed = frozenset(binding.placed if clusters is None else clusters)
        name = binding.metadata.namespace, binding.metadata.name
        self._change(name, _Member(groups, placed) if groups and placed else None)

    def remove(self, namespace: str, name: str) -> None:
        """Remove a deleted binding."""
        self._change((namespace, name), None)

    def _change(self, name: _Name, member: _Member | None) -> None:
        before = self._members.get(name)
        if before != member:
            self.changes += 1
            self._undo.append((name, before))
            self._replace(name, member)

    def _replace(self, name: _Name, member: _Member | None) -> None:
        before = self._members.pop(name, None)
        if member is not None:
            self._members[name] = member
        old_groups, old_clusters = before or ((), _NONE)
        new_groups, new_clusters = member or ((), _NONE)
        for group in {*old_groups, *new_groups}:
            known = self._groups.setdefault(group, GroupClusters(is_apart=group.is_apart))
            known.replace(
                old_clusters if group in old_groups else _NONE,
                new_clusters if group in new_groups else _NONE,
            )
            if known.is_empty:
                del self._groups[group]

    def restrictions(self, binding: ObservedBinding) -> GroupRestrictions:
        """Return the restrictions of a binding by the other bindings in its groups."""
        restrictions = NO_RESTRICTIONS
        for group in _groups_of(binding):
            known = self._groups.get(group)
            own = self._clusters(binding, group)
            if known is not None and known.restricts(own):
                restrictions = restrictions.with_group(
                    known.restricting_clusters(own), is_apart=group.is_apart
                )
        return restrictions

    def earlier_restrictions(self, binding: ObservedBinding, changes: int) -> list[GroupRestrictions]:
        """Return a binding's distinct past restrictions, newest first, back to when ``self.changes`` was ``changes``.

        The present restrictions are included only if they were in effect before one of these changes, too. The list
        goes back at most ``_CHANGES_MAX`` changes.
        """
        restrictions: dict[GroupRestrictions, None] = {}
        redo: list[tuple[_Name, _Member | None]] = []
        for name, before in list(self._undo)[: -(self.changes - changes) - 1 : -1]:
            redo.append((name, self._members.get(name)))
            self._replace(name, before)
            restrictions[self.restrictions(binding)] = None
        for name, after in reversed(redo):
            self._replace(name, after)
        return list(restrictions)

    def _clusters(self, binding: ObservedBinding, group: _Group) -> frozenset[str]:
        """Return the clusters that a binding itself adds to a group; empty if it is not in the group."""
        member = self._members.get((binding.metadata.namespace, binding.metadata.name))
        return member.clusters if member is not None and group in member.groups else _NONE


def restricted(request: requests.Request, restrictions: GroupRestrictions) -> requests.Request:
    """Return the scheduling request with the restrictions of the binding's groups."""
    if restrictions == NO_RESTRICTIONS:
        return request
    return msgspec.structs.replace(
        request, excluded_by_groups=restrictions.apart, allowed_by_groups=restrictions.together
    )


def _groups_of(binding: ObservedBinding) -> tuple[_Group, ...]:
    """Return the groups of a binding; none for a ClusterResourceBinding, whose groups Karmada ignores."""
    namespace, groups = binding.metadata.namespace, binding.spec.workload_affinity_groups
    if groups is None or not namespace:
        return ()
    texts = ((groups.affinity_group, False), (groups.anti_affinity_group, True))
    return tuple(_Group(namespace, text, is_apart) for text, is_apart in texts if text)
