"""Messages between agents and the gateway: works, manifests, reports. Both sides use these structs.

Unknown fields are ignored, so either side may be of a newer release.
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct, field

from events import clusters, limits, shapes

REPORTS_MAX: Final = 1_000
"""Maximum number of reports in a request."""

REPORT_BYTES_MAX: Final = 2 * 1024 * 1024

Key = Annotated[str, Meta(min_length=1, max_length=limits.KEY_BYTES_MAX)]
BatchId = Annotated[str, Meta(min_length=1, max_length=64, pattern="^[A-Za-z0-9-]+$")]
Message = Annotated[str, Meta(max_length=1024)]
APPLIED: Final = "applied"
"""State of a work whose object is to be applied."""

ConflictResolution = Literal["Abort", "Overwrite"]


class Shape(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all messages."""


class Work(Shape, frozen=True, kw_only=True):
    """The desired state of one binding in the cluster; (term, step) is its version, and only the newest one applies.

    ``name`` is the name of the Work object. ``replicas`` is absent for kinds without replicas. ``overrides`` is one
    digest of everything else that changes the manifest: the override policies of this cluster, labels with the state
    preserved from previous clusters, ``reading``, and a Job's share of completions. It is empty if there is none of
    these. With ``preserved`` a removed workload stays in the cluster.
    """

    key: str
    state: Literal["applied", "removed", "suspended"] = field(name="told")
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
        """Version of the work; of all works of a binding, the agent applies the one with the highest version."""
        return self.term, self.step


class Line(Shape, frozen=True, kw_only=True):
    """One line of the feed of works.

    ``position`` is the offset to continue from after this line; absent during the initial list. ``is_listed`` marks the
    end of that list: workloads that it did not contain must be removed. ``namespaces`` is the number of the last change
    of a namespace; it is on the first line after the list and on the next line after each change.
    """

    position: int | None = None
    work: Work | None = None
    is_listed: bool = False
    namespaces: int | None = None


class Manifest(Shape, frozen=True, kw_only=True):
    """The manifest of a work, with replicas and overrides, or the ``fault`` that prevents it.

    ``conflict_resolution`` is the rule for objects that exist already: the template's own, or the policy's.
    """

    manifest: msgspec.Raw
    fault: str = ""
    conflict_resolution: ConflictResolution = "Abort"


class Namespaces(Shape, frozen=True, kw_only=True):
    """The namespaces to propagate to a cluster, with labels; ``keeps_others``: the agent must not delete any others."""

    manifests: tuple[msgspec.Raw, ...] = ()
    keeps_others: bool = False


class Cluster(Shape, frozen=True, kw_only=True):
    """A cluster as its agent needs it; ``is_member`` is false before the cluster joins and after it has left."""

    is_member: bool
    resource_models: tuple[clusters.ResourceGrade, ...] = ()


class Call(Shape, frozen=True, kw_only=True):
    """A user's request to the member's API, which the agent executes. ``target`` is the path with the query.

    An empty ``id`` means that there is no request; such a call only shows that the feed is alive. ``is_ended``: the
    user no longer waits for the response to the request with this id.
    """

    id: str = ""
    method: str = "GET"
    target: str = "/"
    accept: str = ""
    content_type: str = ""
    body: bytes = b""
    is_ended: bool = False


class Token(Shape, frozen=True, kw_only=True):
    token: str


class ObjectState(Shape, frozen=True, kw_only=True):
    """The state of an object in a member: numbers of replicas, health, status and generations.

    ``values`` are the status values that the kind's interpreter requests, by JSON path. ``status`` is the whole
    status as JSON, for custom kinds without such values.
    ``generation`` and ``observed_generation`` are 0 for kinds whose reported status has no generation.
    """

    replicas: shapes.Replicas = 0
    updated: shapes.Replicas = 0
    ready: shapes.Replicas = 0
    available: shapes.Replicas = 0
    healthy: bool = True
    values: shapes.Values = {}
    generation: shapes.Count = 0
    observed_generation: shapes.Count = 0
    status: shapes.Status = ""


class WorkloadReport(ObjectState, frozen=True, kw_only=True, tag="workload"):
    """State of a workload; fields as in ``health.WorkloadReported``."""

    key: Key
    term: shapes.Count
    step: shapes.Count
    fault: Message = ""


class GoneReport(Shape, frozen=True, kw_only=True, tag="gone"):
    """The workload has been removed."""

    key: Key
    term: shapes.Count
    step: shapes.Count


class CapacityReport(Shape, frozen=True, kw_only=True, tag="capacity"):
    """Capacity of the cluster; fields as in ``clusters.CapacityReported``."""

    allocatable: dict[str, str]
    allocated: dict[str, str] = {}
    allocating: dict[str, str] = {}
    modelings: tuple[clusters.GradeCount, ...] = ()
    nodes: shapes.Count = 0
    nodes_ready: shapes.Count = 0


class HealthReport(Shape, frozen=True, kw_only=True, tag="health"):
    """Whether the cluster's API responds. Also a heartbeat: the next one is due within ``grace_seconds``."""

    ready: bool
    grace_seconds: shapes.Seconds
    reason: Annotated[str, Meta(max_length=128)] = ""
    message: Message = ""


class ApisReport(Shape, frozen=True, kw_only=True, tag="apis"):
    """The API kinds that the cluster serves, and its Kubernetes version."""

    apis: tuple[clusters.ApiKind, ...]
    kubernetes_version: Annotated[str, Meta(max_length=64)] = ""


Report = WorkloadReport | GoneReport | CapacityReport | HealthReport | ApisReport


class Reports(Shape, frozen=True, kw_only=True):
    """Reports of one cluster, in order. A retried request has the same ``id`` and no second effect."""

    id: BatchId
    reports: Annotated[tuple[Report, ...], Meta(max_length=REPORTS_MAX)]
