"""Response to a plan: the predicted effect of a change on workloads, clusters and events."""

from msgspec import Struct

from events import shapes
from events.json_values import Json


class WorkloadChange(Struct, frozen=True, kw_only=True, rename="camel"):
    """A workload before and after; ``ready_min`` is the smallest number of ready replicas in between.

    A workload that does not exist has no clusters.

    - ``stopped``, ``started``: numbers of replicas removed from and added to clusters.
    - ``running``: replicas that an eviction has not stopped yet at the end, by cluster.
    - ``missing``: number of the template's replicas that are in no working cluster at the end.
    - ``unassigned``: number of the missing replicas that are assigned to no cluster, not even to a failed one.
    - ``missing_requests``: requests of the unassigned replicas, as Kubernetes quantities.
    - ``needed_in``: clusters in which more capacity would place the unassigned replicas.
    - ``decided_ms``: virtual time of the first decision about the workload; None if there is none.
    """

    key: str
    template: shapes.WorkloadRef
    before: dict[str, int]
    after: dict[str, int]
    condition: str
    message: str
    stopped: int
    started: int
    ready_before: int
    ready_min: int
    ready_after: int
    missing: int
    missing_requests: dict[str, str]
    unassigned: int = 0
    decided_ms: int | None = None
    needed_in: list[str] = []
    running: dict[str, int] = {}


class ClusterChange(Struct, frozen=True, kw_only=True, rename="camel"):
    """Used resources of a cluster before and after, and their highest values between, as Kubernetes quantities."""

    name: str
    allocatable: dict[str, str]
    before: dict[str, str]
    after: dict[str, str]
    peak: dict[str, str]


class PredictedEvent(Struct, frozen=True, kw_only=True, rename="camel"):
    """An event ``after_ms`` of virtual time after the change; ``cause`` is the position of the input that caused it."""

    after_ms: int
    type: str
    subject: str
    cause: str
    data: Json


class Prediction(Struct, frozen=True, kw_only=True, rename="camel"):
    """The effect of a change on an engine, as of a number of its log.

    ``workloads`` counts the bindings that exist at the beginning or at the end; ``changed`` has those that differ at
    the end or lost ready replicas in between. The engine was stable after ``settled_ms`` of virtual time;
    ``is_settled``: nothing is due after ``horizon_ms`` either. ``unplaced`` are the keys of the bindings whose
    scheduling fails at the end, but did not at the beginning. ``unrelated`` are the keys of the bindings that would
    change in the same way without the change, because the engine was not stable when it began. ``omitted`` is the
    number of events that are not listed. ``refused`` are inputs that the engine would reject, with the reason.
    """

    number: int
    time: str
    horizon_ms: int
    settled_ms: int
    is_settled: bool
    workloads: int
    changed: list[WorkloadChange]
    unplaced: list[str]
    clusters: list[ClusterChange]
    events: list[PredictedEvent]
    omitted: int = 0
    unrelated: list[str] = []
    refused: list[str] = []
    assumptions: list[str] = []

    @property
    def moved(self) -> list[WorkloadChange]:
        """The workloads whose clusters or replicas change."""
        return [change for change in self.changed if change.before != change.after]
