"""A placement compiled for a fleet: each rule becomes a mask that shows which clusters the rule matches.

Compiled placements are valid until a cluster fact other than capacity changes; the fleet drops them then. The
rules are those of the filter plugins of Karmada's scheduler.
"""

import enum
import operator
from collections.abc import Callable
from typing import Final

import numpy as np

from engine.kubeapi.values import selectors
from engine.kubeapi.values.selectors import Operator
from engine.kubeapi.values.taints import Effect
from engine.objects import clusters, placements
from engine.objects.placements import DivisionPreference, SchedulingType
from engine.placement import encoded_columns

POOLS_MAX: Final = 16
"""Maximum number of pools cached per placement: one per affinity group and kind. A full cache is cleared."""

NO_API: Final = "cluster(s) did not have the API resource"
NOT_SELECTED: Final = "cluster(s) did not match the placement cluster affinity constraint"
_REPELLING: Final = frozenset({Effect.NO_SCHEDULE, Effect.NO_EXECUTE})
_BY_VALUE: Final = frozenset({Operator.IN, Operator.NOT_IN})
_PROPERTIES: Final[dict[str, tuple[str, Callable[[clusters.ClusterManifest], tuple[str, ...]]]]] = {
    "provider": ("provider", lambda cluster: _texts(cluster.spec.provider)),
    "region": ("region", lambda cluster: _texts(cluster.spec.region)),
    "zone": ("zones", lambda cluster: cluster.spec.zones),
}
"""Cluster properties by name in selectors and constraints: the name in messages, and a function to read the values."""


class Strategy(enum.Enum):
    """How the replicas of a workload are divided among clusters."""

    DUPLICATED = enum.auto()
    STATIC = enum.auto()
    DYNAMIC = enum.auto()
    AGGREGATED = enum.auto()


class Filter:
    """One filter rule; ``codes`` has for each cluster the index in ``texts`` of the reason to exclude it (0: none)."""

    __slots__ = ("codes", "exempts_previous_clusters", "texts")

    def __init__(
        self, codes: encoded_columns.Integers, texts: list[str], *, exempts_previous_clusters: bool
    ) -> None:
        """``exempts_previous_clusters`` means that clusters in the binding's previous assignment pass anyway."""
        self.codes = codes
        self.texts = texts
        self.exempts_previous_clusters = exempts_previous_clusters


class Group:
    """An affinity group: the mask of its own affinity, and the masks of its overflow tiers."""

    __slots__ = ("inline", "name", "selected", "tiers")

    def __init__(self, name: str, inline: encoded_columns.Mask, overflow: list[encoded_columns.Mask]) -> None:
        """Number the tiers.

        Tier 0 has the clusters of the affinity itself. Tier n has the clusters that match the n-th overflow entry but
        neither the affinity nor an earlier entry.
        """
        self.name = name
        self.inline = inline
        self.tiers: encoded_columns.Integers | None = None
        self.selected = inline
        if overflow:
            self.tiers = np.zeros(len(inline), dtype=np.int64)
            for tier, mask in reversed(list(enumerate(overflow, start=1))):
                self.tiers[mask] = tier
                self.selected = self.selected | mask
            self.tiers[inline] = 0


class PoolCache:
    """Results shared by the decisions that choose exactly the clusters of one pool.

    ``names`` are the pool's clusters. ``numbers`` (replicas) and ``pairs`` (name, replicas) are results in which
    every cluster has the same number of replicas, keyed by that number.
    """

    __slots__ = ("names", "numbers", "pairs")

    def __init__(self) -> None:
        self.names: tuple[str, ...] | None = None
        self.numbers: dict[int, tuple[int, ...]] = {}
        self.pairs: dict[int, tuple[tuple[str, int], ...]] = {}


class Pool:
    """The clusters that pass an affinity group's filters for one kind of template.

    Exceptions for a single binding (its previous clusters, its evictions) are applied later, in ``filters``.
    """

    __slots__ = (
        "cache",
        "excludable",
        "excluded",
        "exempted",
        "filters",
        "fits",
        "index",
        "present",
        "whole",
    )

    def __init__(self, filters: list[Filter], present: encoded_columns.Mask) -> None:
        """Combine the filters; ``present`` excludes clusters that are being deleted."""
        self.filters = filters
        self.present = present
        self.cache = PoolCache()
        failed = np.zeros(len(present), dtype=np.bool_)
        self.exempted = np.zeros(len(present), dtype=np.bool_)
        self.excluded: dict[str, int] = {}
        for rule in filters:
            failing = (rule.codes > 0) & present
            if rule.exempts_previous_clusters:
                self.exempted |= failing
            counts = np.bincount(rule.codes[failing & ~failed], minlength=len(rule.texts)).tolist()
            self.excluded.update(
                {text: count for text, count in zip(rule.texts, counts, strict=True) if count}
            )
            failed |= failing
        self.fits = present & ~failed
        self.index = np.flatnonzero(self.fits)
        self.whole = len(self.index) == len(present)
        self.excludable = bool(self.exempted.any())

    def first_reason(self, position: int, *, is_previous: bool) -> str:
        """Return the message of the first filter that excludes a cluster; empty if it passes.

        ``is_previous``: the cluster is in the binding's previous assignment.
        """
        for rule in self.filters:
            code = 0 if is_previous and rule.exempts_previous_clusters else int(rule.codes[position])
            if code:
                return rule.texts[code]
        return ""


class Compiled:
    """One placement, precomputed for one fleet; valid until a cluster changes in more than its capacity."""

    def __init__(self, placement: placements.Placement, fleet: encoded_columns.ClusterColumns) -> None:
        """Compute all masks that do not depend on the template."""
        self.preference = placement.replica_scheduling
        self.strategy = strategy(self.preference)
        self.duplicates = placement.replica_scheduling is None or self.strategy == Strategy.DUPLICATED
        self.spread = {constraint.spread_by_field: constraint for constraint in placement.spread_constraints}
        self.ignores_spread = not placement.spread_constraints or _ignores_spread(
            placement.replica_scheduling
        )
        self.present = presence(fleet).mask(bool)
        self.groups = _groups(placement, fleet)
        self._tolerated = _taint_filter(placement, fleet)
        self._properties = [
            _property_filter(constraint, fleet)
            for constraint in placement.spread_constraints
            if constraint.spread_by_field in _PROPERTIES
        ]
        self.weights = _static_weights(placement, fleet)
        self.regions = _region_ranks(fleet) if "region" in self.spread else None
        self._pools: dict[tuple[int, str, str, bool], Pool] = {}
        self._fleet = fleet

    def pool(self, group: int, api_version: str, kind: str, *, overflowing: bool) -> Pool:
        """Return the clusters of a group for a kind of template; ``overflowing`` includes its overflow tiers."""
        key = (group, api_version, kind, overflowing)
        pool = self._pools.get(key)
        if pool is None:
            selected = self.groups[group].selected if overflowing else self.groups[group].inline
            filters = [
                api_filter(self._fleet, api_version, kind),
                self._tolerated,
                Filter((~selected).astype(np.int64), ["", NOT_SELECTED], exempts_previous_clusters=False),
                *self._properties,
            ]
            if len(self._pools) >= POOLS_MAX:
                self._pools.clear()
            pool = self._pools[key] = Pool(filters, self.present)
        return pool


def presence(fleet: encoded_columns.ClusterColumns) -> encoded_columns.Column[bool]:
    """Column with True for each cluster that is present, that is, not being deleted."""
    return fleet.column("present", lambda cluster: cluster.metadata.deletion_timestamp is None)


def strategy(preference: placements.ReplicaSchedulingStrategy | None) -> Strategy | None:
    """Return the division strategy; None for a combination that Karmada's scheduler does not support."""
    if preference is None or preference.replica_scheduling_type == SchedulingType.DUPLICATED:
        return Strategy.DUPLICATED
    match preference.replica_scheduling_type, preference.replica_division_preference:
        case SchedulingType.DIVIDED, DivisionPreference.AGGREGATED:
            return Strategy.AGGREGATED
        case SchedulingType.DIVIDED, DivisionPreference.WEIGHTED:
            weights = preference.weight_preference
            is_dynamic = weights is not None and weights.dynamic_weight
            return Strategy.DYNAMIC if is_dynamic else Strategy.STATIC
        case _:
            return None


def affinity_mask(
    affinity: placements.ClusterAffinity, fleet: encoded_columns.ClusterColumns
) -> encoded_columns.Mask:
    """Return the mask of the clusters that an affinity selects."""
    mask = np.ones(len(fleet), dtype=np.bool_)
    if affinity.label_selector is not None:
        for requirement in affinity.label_selector.requirements():
            mask &= _label_mask(requirement, fleet)
    if affinity.field_selector is not None:
        for requirement in affinity.field_selector.match_expressions:
            mask &= _field_mask(requirement, fleet)
    if affinity.cluster_names:
        mask &= _name_mask(affinity.cluster_names, fleet)
    if affinity.exclude:
        mask &= ~_name_mask(affinity.exclude, fleet)
    return mask


def api_filter(fleet: encoded_columns.ClusterColumns, api_version: str, kind: str) -> Filter:
    """Return a filter that excludes clusters which do not serve a kind of an API version."""

    def lacks(enablements: tuple[clusters.ApiEnablement, ...]) -> bool:
        return not any(
            api.group_version == api_version and any(resource.kind == kind for resource in api.resources)
            for api in enablements
        )

    column = fleet.column("apis", lambda cluster: cluster.status.api_enablements)
    return Filter(column.mask(lacks).astype(np.int64), ["", NO_API], exempts_previous_clusters=True)


def _groups(placement: placements.Placement, fleet: encoded_columns.ClusterColumns) -> list[Group]:
    """The affinity groups in order; a single affinity, or none, is one group without a name."""
    affinity = placement.cluster_affinity
    mask = np.ones(len(fleet), dtype=np.bool_) if affinity is None else affinity_mask(affinity, fleet)
    if not placement.cluster_affinities:
        return [Group("", mask, [])]
    if affinity is not None:
        return [Group(term.affinity_name, mask, []) for term in placement.cluster_affinities]
    return [
        Group(
            term.affinity_name,
            affinity_mask(term, fleet),
            [affinity_mask(tier, fleet) for tier in term.overflow_affinities],
        )
        for term in placement.cluster_affinities
    ]


def _label_mask(
    requirement: selectors.Requirement, fleet: encoded_columns.ClusterColumns
) -> encoded_columns.Mask:
    key = requirement.key
    column = fleet.column("label " + key, lambda cluster: cluster.metadata.labels.get(key))
    if requirement.operator not in _BY_VALUE:
        return column.mask(lambda value: requirement.matches(() if value is None else (value,)))
    values = frozenset(requirement.values)
    is_in = requirement.operator == Operator.IN
    return column.mask(lambda value: (value in values) == is_in)


def _field_mask(
    requirement: selectors.Requirement, fleet: encoded_columns.ClusterColumns
) -> encoded_columns.Mask:
    if requirement.key not in _PROPERTIES:
        return np.full(len(fleet), requirement.matches(()))
    return _property(requirement.key, fleet).mask(requirement.matches)


def _property(field: str, fleet: encoded_columns.ClusterColumns) -> encoded_columns.Column[tuple[str, ...]]:
    name, values_of = _PROPERTIES[field]
    return fleet.column(f"property {name}", values_of)


def _texts(value: str) -> tuple[str, ...]:
    return (value,) if value else ()


def _name_mask(names: tuple[str, ...], fleet: encoded_columns.ClusterColumns) -> encoded_columns.Mask:
    mask = np.zeros(len(fleet), dtype=np.bool_)
    mask[[fleet.positions[name] for name in names if name in fleet.positions]] = True
    return mask


def _taint_filter(placement: placements.Placement, fleet: encoded_columns.ClusterColumns) -> Filter:
    """Filter that excludes clusters with an untolerated taint; the message names the cluster's first such taint."""
    codes = {"": 0}
    tolerations = placements.Tolerations(placement.cluster_tolerations)

    def first_untolerated(taints: tuple[tuple[str, str, str], ...]) -> int:
        for key, value, effect in taints:
            if effect in _REPELLING and tolerations.first(key, value, effect) is None:
                text = f"{key}={value}:{effect}" if value else f"{key}:{effect}"
                return codes.setdefault(f"cluster(s) had untolerated taint {{{text}}}", len(codes))
        return 0

    taints = fleet.column(
        "taints",
        lambda cluster: tuple((taint.key, taint.value, taint.effect) for taint in cluster.spec.taints),
    )
    numbers = taints.numbers(first_untolerated)
    return Filter(numbers, list(codes), exempts_previous_clusters=True)


def _property_filter(
    constraint: placements.SpreadConstraint, fleet: encoded_columns.ClusterColumns
) -> Filter:
    """Filter that excludes clusters without the property of a spread constraint, even if the constraint is ignored."""
    missing = _property(constraint.spread_by_field, fleet).mask(operator.not_)
    texts = ["", f"cluster(s) did not have {_PROPERTIES[constraint.spread_by_field][0]} property"]
    return Filter(missing.astype(np.int64), texts, exempts_previous_clusters=False)


def _ignores_spread(preference: placements.ReplicaSchedulingStrategy | None) -> bool:
    """Whether static weights choose the clusters, so that spread constraints are ignored.

    An absent ``weightPreference`` counts as static weights, an empty one does not.
    """
    if preference is None or preference.replica_scheduling_type != SchedulingType.DIVIDED:
        return False
    if preference.replica_division_preference != DivisionPreference.WEIGHTED:
        return False
    weights = preference.weight_preference
    return weights is None or (bool(weights.static_weight_list) and not weights.dynamic_weight)


def _static_weights(
    placement: placements.Placement, fleet: encoded_columns.ClusterColumns
) -> encoded_columns.Integers | None:
    """Return, per cluster, the highest weight of the rules that match it; None without static weights."""
    preference = placement.replica_scheduling
    if preference is None or preference.weight_preference is None or strategy(preference) != Strategy.STATIC:
        return None
    weights = np.zeros(len(fleet), dtype=np.int64)
    for rule in preference.weight_preference.static_weight_list:
        mask = affinity_mask(rule.target_cluster, fleet)
        weights[mask] = np.maximum(weights[mask], rule.weight)
    return weights


def _region_ranks(fleet: encoded_columns.ClusterColumns) -> tuple[list[str], encoded_columns.Integers]:
    """All regions in name order, and each cluster's index in that list."""
    column = fleet.column("region", lambda cluster: cluster.spec.region)
    names = sorted(column.values)
    ranks = {name: rank for rank, name in enumerate(names)}
    return names, column.numbers(ranks.__getitem__)
