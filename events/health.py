"""Topic ``health``: reports of member clusters on each workload."""

from typing import Annotated, Final

from msgspec import Meta

from events import shapes, topics

FAULT_CHARS_MAX: Final = 1_024


@shapes.recorded("workload-reported", topics.HEALTH)
class WorkloadReported(shapes.Event, frozen=True, kw_only=True):
    """A member's report on a workload: its replicas and its health.

    ``term`` and ``step`` are the version of the reported work; a report is ignored if the previous report has a newer
    version. ``fault`` is the reason why the work could not be applied; the previous version keeps running. ``values``
    are the status values that the work requested, as far as they exist. ``generation`` is that of the member's object,
    ``observed_generation`` the one that its status describes; both are 0 for kinds whose status has no generation.
    ``status`` is the whole status as JSON, for custom kinds and ResourceQuotas whose work requested no values; empty
    if it is too long.
    """

    cluster: str
    key: str
    term: shapes.Count
    step: shapes.Count
    replicas: shapes.Replicas = 0
    updated: shapes.Replicas = 0
    ready: shapes.Replicas = 0
    available: shapes.Replicas = 0
    healthy: bool = True
    fault: Annotated[str, Meta(max_length=FAULT_CHARS_MAX)] = ""
    values: shapes.Values = {}
    generation: shapes.Count = 0
    observed_generation: shapes.Count = 0
    status: shapes.Status = ""

    @property
    def record_key(self) -> str:
        return self.key


@shapes.recorded("workload-gone", topics.HEALTH)
class WorkloadGone(shapes.Event, frozen=True, kw_only=True):
    """The workload was removed from the cluster; a new template of its name is dispatched there only after this."""

    cluster: str
    key: str
    term: shapes.Count
    step: shapes.Count

    @property
    def record_key(self) -> str:
        return self.key
