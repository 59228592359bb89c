"""Member clusters as Karmada's Cluster objects describe them (cluster.karmada.io/v1alpha1).

Only what scheduling reads; all other fields are ignored on decoding. Field names on the wire are Karmada's.
"""

from typing import Annotated, TypeAlias

import msgspec

from engine.objects import quantity

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Quantities: TypeAlias = dict[str, quantity.Quantity]


class Taint(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """What keeps workloads away: NoSchedule and NoExecute repel, PreferNoSchedule does nothing."""

    key: str
    effect: str
    value: str = ""
    time_added: str | None = None


class ModelRange(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The range of one resource in a grade of nodes; only ``min`` counts."""

    name: str
    min: quantity.Quantity
    max: quantity.Quantity = ""


class ResourceModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One grade of nodes, and what each of them has at least."""

    grade: Count
    ranges: tuple[ModelRange, ...] = ()


class GradeCount(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many nodes of a grade are free."""

    grade: Count
    count: Count


class ResourceSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the cluster has, what it has given away, and what it is about to give away."""

    allocatable: Quantities = {}
    allocated: Quantities = {}
    allocating: Quantities = {}
    allocatable_modelings: tuple[GradeCount, ...] = ()


class ApiResource(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One kind that the cluster serves."""

    kind: str
    name: str = ""


class ApiEnablement(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The kinds of one API group and version that the cluster serves."""

    group_version: str
    resources: tuple[ApiResource, ...] = ()


class ClusterMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Name, labels, and whether the cluster is being removed."""

    name: str
    labels: dict[str, str] = {}
    deletion_timestamp: str | None = None


class ClusterSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Where the cluster stands and what it repels; the single ``zone`` of older objects is not read.

    In the ``sync_mode`` Pull an agent in the cluster gets the works by itself.
    """

    provider: str = ""
    region: str = ""
    zone: str = ""
    zones: tuple[str, ...] = ()
    taints: tuple[Taint, ...] = ()
    resource_models: tuple[ResourceModel, ...] = ()
    sync_mode: str = "Push"


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the cluster serves and how much room it has; no summary means no room."""

    api_enablements: tuple[ApiEnablement, ...] = ()
    resource_summary: ResourceSummary | None = None


class ClusterManifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One member cluster."""

    metadata: ClusterMetadata
    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()
