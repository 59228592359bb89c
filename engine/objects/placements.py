"""Placements: which clusters a policy allows, and how it divides replicas (policy.karmada.io/v1alpha1).

Field names on the wire are Karmada's; unknown fields are ignored on decoding. Absent and empty lists are the same,
but an absent object differs from an empty one (`weightPreference: {}` is a preference).
"""

import operator
from collections.abc import Iterable
from typing import Annotated, TypeAlias

import msgspec

from engine.objects import selectors

Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class ClusterAffinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Clusters by labels AND fields AND names, each only where given; ``exclude`` wins over all of them."""

    label_selector: selectors.LabelSelector | None = None
    field_selector: selectors.FieldSelector | None = None
    cluster_names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class ClusterAffinityTerm(ClusterAffinity, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One of several groups of clusters that are tried in order, with the tiers that take what it cannot hold."""

    affinity_name: str = ""
    overflow_affinities: tuple[ClusterAffinity, ...] = ()


class Toleration(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """Which taints do not matter; an empty effect means every effect, an empty key every key."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None

    def tolerates(self, key: str, value: str, effect: str) -> bool:
        """Whether this toleration matches the taint."""
        if self.effect not in {"", effect} or self.key not in {"", key}:
            return False
        if self.operator in {"", "Equal"}:
            return self.value == value
        return self.operator == "Exists"


class Tolerations:
    """Tolerations by the key that they name, so that asking for one taint does not ask all of them."""

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        self._by_key: dict[str, list[tuple[int, Toleration]]] = {}
        for place, toleration in enumerate(tolerations):
            self._by_key.setdefault(toleration.key, []).append((place, toleration))

    def first(self, key: str, value: str, effect: str) -> Toleration | None:
        """The first toleration that matches a taint."""
        found = [
            next((each for each in self._by_key.get(name, ()) if each[1].tolerates(key, value, effect)), None)
            for name in {key, ""}
        ]
        return min((each for each in found if each), default=(0, None), key=operator.itemgetter(0))[1]


class SpreadConstraint(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True
):
    """How many groups (clusters, regions) are chosen; an absent ``maxGroups`` is 0 and selects nothing."""

    spread_by_field: str = ""
    spread_by_label: str = ""
    min_groups: Int64 = 0
    max_groups: Int64 = 0


class StaticClusterWeight(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The weight of the clusters that a rule means."""

    target_cluster: ClusterAffinity = ClusterAffinity()
    weight: Int64 = 0


class ClusterPreferences(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Weights by rule, or by free room (``dynamicWeight: AvailableReplicas``)."""

    static_weight_list: tuple[StaticClusterWeight, ...] = ()
    dynamic_weight: str = ""


class ReplicaSchedulingStrategy(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """Duplicated: all replicas to each cluster. Divided: by weight, or Aggregated into as few clusters as hold them."""

    replica_scheduling_type: str = ""
    replica_division_preference: str = ""
    weight_preference: ClusterPreferences | None = None


class WorkloadAffinityTerm(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True
):
    """Workloads that belong together (or apart) by the value of a label; kept and compared, not acted upon."""

    group_by_label_key: str = ""


class WorkloadAffinity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Affinity between workloads; the reference scheduler's default does not act upon it either."""

    affinity: WorkloadAffinityTerm | None = None
    anti_affinity: WorkloadAffinityTerm | None = None


class Placement(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Everything a policy says about where a template goes."""

    cluster_affinity: ClusterAffinity | None = None
    cluster_affinities: tuple[ClusterAffinityTerm, ...] = ()
    cluster_tolerations: tuple[Toleration, ...] = ()
    spread_constraints: tuple[SpreadConstraint, ...] = ()
    replica_scheduling: ReplicaSchedulingStrategy | None = None
    workload_affinity: WorkloadAffinity | None = None
