"""What agents and the gateway say to one another: works, manifests, reports. Both ends read and write these structs.

Fields that one end does not know are passed over, so that either may be the newer one.
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from events import clusters, limits, shapes

REPORTS_MAX: Final = 1_000
"""Reports of one request."""

REPORT_BYTES_MAX: Final = 2 * 1024 * 1024

Key = Annotated[str, Meta(min_length=1, max_length=limits.KEY_BYTES_MAX)]
BatchId = Annotated[str, Meta(min_length=1, max_length=64, pattern="^[A-Za-z0-9-]+$")]
Message = Annotated[str, Meta(max_length=1024)]
ConflictResolution = Literal["Abort", "Overwrite"]


class Shape(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of what is said."""


class Work(Shape, frozen=True, kw_only=True):
    """What the cluster must do about one binding; (term, step) is the version, and the newest one counts.

    ``name`` is that of the Work object. ``replicas`` is absent for kinds that have none. ``overrides`` is a digest of
    what override policies say here, of the labels that preserve state, and of ``reading``; empty for nothing.
    """

    key: str
    told: Literal["applied", "removed", "suspended"]
    term: int
    step: int
    name: str = ""
    template: shapes.WorkloadRef | None = None
    digest: str = ""
    replicas: int | None = None
    overrides: str = ""
    reading: shapes.Reading | None = None
    preserved: bool = False

    @property
    def version(self) -> tuple[int, int]:
        """What decides which of two works counts."""
        return self.term, self.step


class Line(Shape, frozen=True, kw_only=True):
    """One line of the feed of works.

    ``position`` is where to go on, once this line is taken; absent while the view is listed. ``is_listed`` ends the
    list: what it didn't name must not run.
    """

    position: int | None = None
    work: Work | None = None
    is_listed: bool = False


class Manifest(Shape, frozen=True, kw_only=True):
    """What a work makes of its template, with replicas and overrides; or the ``fault`` because of which it can't.

    ``conflict_resolution`` is what the policy that places it says of objects that are there already.
    """

    manifest: msgspec.Raw
    fault: str = ""
    conflict_resolution: ConflictResolution = "Abort"


class Cluster(Shape, frozen=True, kw_only=True):
    """What an agent must know of its cluster; ``is_member`` is False before it joined and once it left."""

    is_member: bool
    resource_models: tuple[clusters.ResourceGrade, ...] = ()


class Token(Shape, frozen=True, kw_only=True):
    """The token of a cluster's agent."""

    token: str


class WorkloadReport(Shape, frozen=True, kw_only=True, tag="workload"):
    """How a workload stands; see ``health.WorkloadReported``."""

    key: Key
    term: shapes.Count
    step: shapes.Count
    replicas: shapes.Replicas = 0
    updated: shapes.Replicas = 0
    ready: shapes.Replicas = 0
    available: shapes.Replicas = 0
    healthy: bool = True
    fault: Message = ""
    values: shapes.Values = {}


class GoneReport(Shape, frozen=True, kw_only=True, tag="gone"):
    """The workload was removed."""

    key: Key
    term: shapes.Count
    step: shapes.Count


class CapacityReport(Shape, frozen=True, kw_only=True, tag="capacity"):
    """The room of the cluster; see ``clusters.CapacityReported``."""

    allocatable: dict[str, str]
    allocated: dict[str, str] = {}
    allocating: dict[str, str] = {}
    modelings: tuple[clusters.GradeCount, ...] = ()
    nodes: shapes.Count = 0
    nodes_ready: shapes.Count = 0


class HealthReport(Shape, frozen=True, kw_only=True, tag="health"):
    """Whether the cluster's API answers, and within how many seconds the next report comes."""

    ready: bool
    grace_seconds: shapes.Seconds
    reason: Annotated[str, Meta(max_length=128)] = ""
    message: Message = ""


class ApisReport(Shape, frozen=True, kw_only=True, tag="apis"):
    """Which kinds the cluster serves, and its release."""

    apis: tuple[clusters.ApiKind, ...]
    kubernetes_version: Annotated[str, Meta(max_length=64)] = ""


Report = WorkloadReport | GoneReport | CapacityReport | HealthReport | ApisReport


class Reports(Shape, frozen=True, kw_only=True):
    """Reports of one cluster, in order. A repeated request repeats ``id`` and has no second effect."""

    id: BatchId
    reports: Annotated[tuple[Report, ...], Meta(max_length=REPORTS_MAX)]
