"""Statuses of members, of their workloads and pods, as the query API lists them."""

from typing import Literal

from msgspec import Struct

from events import shapes

FaultKind = Literal["down", "slow", "losing", "lagging", "throttled", "failing"]


class MemberStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """Status of a member as shown to users; the fault fields are those of ``state.Faults``."""

    name: str
    joined: bool
    down: bool
    slowness: int
    lose_every: int
    lag_ms: int
    throttle_every: int
    fail_every: int
    startup_ms: int
    workloads: int


class WorkloadStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """Status of a workload in a cluster; ``term`` and ``step`` are the version of the work that it runs."""

    cluster: str
    key: str
    workload: shapes.WorkloadRef
    replicas: int
    ready: int
    updated: int
    available: int
    created_ms: int
    term: int
    step: int
    suspended: bool
    preserved: bool


class Pod(Struct, frozen=True, kw_only=True, rename="camel"):
    """One replica.

    ``phase`` is Running, Pending or Succeeded; ``ready_ms`` is when it is or will be ready, None if not admitted.
    ``slot`` is the pod's number in the workload, which the successor of a deleted pod inherits. ``waiting`` is the
    reason why an admitted pod does not start.
    """

    cluster: str
    namespace: str
    name: str
    owner: str
    labels: dict[str, str]
    phase: str
    ready: bool
    created_ms: int
    ready_ms: int | None = None
    restarts: int = 0
    slot: int = 0
    waiting: str = ""
