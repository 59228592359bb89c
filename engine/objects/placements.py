"""Placements: the clusters that a policy allows, and the division of replicas (policy.karmada.io/v1alpha1).

Field names on the wire are Karmada's; decoding ignores unknown fields. Absent and empty lists are equal, but
an absent object differs from an empty one (`weightPreference: {}` is a preference).
"""

import enum
import operator
from collections.abc import Iterable
from typing import Annotated, TypeAlias

import msgspec

from engine.domain.workload_groups import WorkloadAffinity
from engine.kubeapi.values import selectors

Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class ClusterAffinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Selects the clusters that match all set conditions (labels, fields, names) and are not in ``exclude``."""

    label_selector: selectors.LabelSelector | None = None
    field_selector: selectors.FieldSelector | None = None
    cluster_names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class ClusterAffinityTerm(ClusterAffinity, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One of several affinity groups, tried in order; its overflow tiers take the replicas that do not fit into it."""

    affinity_name: str = ""
    overflow_affinities: tuple[ClusterAffinity, ...] = ()


class Toleration(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """A toleration of taints; an empty effect matches every effect, an empty key every key."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None

    def tolerates(self, key: str, value: str, effect: str) -> bool:
        if self.effect not in {"", effect} or self.key not in {"", key}:
            return False
        if self.operator in {"", "Equal"}:
            return self.value == value
        return self.operator == "Exists"


class Tolerations:
    """Tolerations indexed by key, so that a taint is compared only with those for its key or for any key."""

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        self._by_key: dict[str, list[tuple[int, Toleration]]] = {}
        for index, toleration in enumerate(tolerations):
            self._by_key.setdefault(toleration.key, []).append((index, toleration))

    def first(self, key: str, value: str, effect: str) -> Toleration | None:
        """Return the first toleration that matches a taint; None if there is none."""
        candidates = [
            next(
                (
                    candidate
                    for candidate in self._by_key.get(name, ())
                    if candidate[1].tolerates(key, value, effect)
                ),
                None,
            )
            for name in {key, ""}
        ]
        return min(
            (candidate for candidate in candidates if candidate),
            default=(0, None),
            key=operator.itemgetter(0),
        )[1]


class SpreadConstraint(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True
):
    """How many groups (clusters, regions) are chosen; an absent ``maxGroups`` is 0 and selects none."""

    spread_by_field: str = ""
    spread_by_label: str = ""
    min_groups: Int64 = 0
    max_groups: Int64 = 0


class StaticClusterWeight(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The static weight of the clusters that ``target_cluster`` selects."""

    target_cluster: ClusterAffinity = ClusterAffinity()
    weight: Int64 = 0


class ClusterPreferences(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Static weights, or weights by available replicas (``dynamicWeight: AvailableReplicas``)."""

    static_weight_list: tuple[StaticClusterWeight, ...] = ()
    dynamic_weight: str = ""


class SchedulingType(enum.StrEnum):
    """Duplicated: each cluster has all replicas. Divided: the clusters share them."""

    DUPLICATED = "Duplicated"
    DIVIDED = "Divided"


class DivisionPreference(enum.StrEnum):
    """Weighted: replicas by weight. Aggregated: in as few clusters as possible."""

    WEIGHTED = "Weighted"
    AGGREGATED = "Aggregated"


class ReplicaSchedulingStrategy(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """Duplicated: all replicas in each cluster. Divided: by weight, or Aggregated into as few clusters as possible."""

    replica_scheduling_type: str = ""
    replica_division_preference: str = ""
    weight_preference: ClusterPreferences | None = None


class Placement(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The placement of a policy: all its constraints on the clusters of a template."""

    cluster_affinity: ClusterAffinity | None = None
    cluster_affinities: tuple[ClusterAffinityTerm, ...] = ()
    cluster_tolerations: tuple[Toleration, ...] = ()
    spread_constraints: tuple[SpreadConstraint, ...] = ()
    replica_scheduling: ReplicaSchedulingStrategy | None = None
    workload_affinity: WorkloadAffinity | None = None
