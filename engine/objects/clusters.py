"""Member clusters as Karmada's Cluster objects (cluster.karmada.io/v1alpha1).

Only the fields that scheduling reads; decoding ignores all others. Field names on the wire are Karmada's.
"""

from typing import Annotated, TypeAlias

import msgspec

from engine.kubeapi.values import quantity

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Quantities: TypeAlias = dict[str, quantity.Quantity]


class Taint(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """A taint: NoSchedule and NoExecute repel workloads, PreferNoSchedule has no effect."""

    key: str
    effect: str
    value: str = ""
    time_added: str | None = None

    @property
    def text(self) -> str:
        """The taint as kubectl writes it: ``key=value:effect``."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class ModelRange(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The range of one resource in a grade of nodes; only ``min`` is used."""

    name: str
    min: quantity.Quantity
    max: quantity.Quantity = ""


class ResourceModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A grade of nodes, with the minimum resources of a node of this grade."""

    grade: Count
    ranges: tuple[ModelRange, ...] = ()


class GradeCount(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Number of free nodes of a grade."""

    grade: Count
    count: Count


class ResourceSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Allocatable and allocated resources, those about to be allocated, and free nodes by grade."""

    allocatable: Quantities = {}
    allocated: Quantities = {}
    allocating: Quantities = {}
    allocatable_modelings: tuple[GradeCount, ...] = ()


class ApiResource(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A kind that the cluster serves."""

    kind: str
    name: str = ""


class ApiEnablement(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The kinds of one API group and version that the cluster serves."""

    group_version: str
    resources: tuple[ApiResource, ...] = ()


class ClusterMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Name, labels and deletion time of a cluster."""

    name: str
    labels: dict[str, str] = {}
    deletion_timestamp: str | None = None


class ClusterSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Provider, location, taints and resource models of a cluster; the deprecated single ``zone`` is ignored.

    With the ``sync_mode`` Pull an agent in the cluster fetches the works.
    """

    provider: str = ""
    region: str = ""
    zone: str = ""
    zones: tuple[str, ...] = ()
    taints: tuple[Taint, ...] = ()
    resource_models: tuple[ResourceModel, ...] = ()
    sync_mode: str = "Push"


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Served kinds and capacity of a cluster; no summary means no capacity."""

    api_enablements: tuple[ApiEnablement, ...] = ()
    resource_summary: ResourceSummary | None = None


class ClusterManifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    metadata: ClusterMetadata
    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()
