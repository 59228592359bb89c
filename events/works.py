"""Topic ``works``: what one cluster must run now.

A work refers to the template by position and digest and adds only what differs in this cluster. Its version
is the (term, step) of the deciding shard; agents keep the newest version of each binding's work.
"""

from events import shapes, topics


class _WorkEvent(shapes.Event, frozen=True, kw_only=True):
    """Base of the events about a binding's work in one cluster; ``key`` is the binding's."""

    cluster: str
    key: str

    @property
    def record_key(self) -> str:
        return self.cluster

    @property
    def subject(self) -> str:
        return self.key


@shapes.recorded("work-applied", topics.WORKS)
class WorkApplied(_WorkEvent, frozen=True, kw_only=True):
    """The cluster must run this workload; ``replicas`` is absent for kinds without replicas.

    The manifest is made from the template by setting the replicas, then adding the ``labels``, which carry preserved
    state from previous clusters, then applying the ``overrides`` in order. ``reading`` is how the member reads the
    workload's status, in addition to the built-in rules for its kind. An unmanaged object that exists in the cluster
    already is taken over with ``overwrites``; otherwise it is a conflict. ``completions`` is the cluster's share of a
    Job's completions, if the Job's replicas are divided.
    """

    template: shapes.WorkloadRef
    shard: shapes.Count
    offset: shapes.Count
    digest: str
    term: shapes.Count
    step: shapes.Count
    replicas: shapes.Count | None = None
    overrides: tuple[shapes.OverrideRef, ...] = ()
    labels: dict[str, str] = {}
    reading: shapes.Reading | None = None
    overwrites: bool = False
    completions: shapes.Count | None = None


@shapes.recorded("work-removed", topics.WORKS)
class WorkRemoved(_WorkEvent, frozen=True, kw_only=True):
    """The cluster must no longer run this workload; with ``preserved`` it keeps what already runs."""

    term: shapes.Count
    step: shapes.Count
    preserved: bool = False


@shapes.recorded("work-suspended", topics.WORKS)
class WorkSuspended(_WorkEvent, frozen=True, kw_only=True):
    """The cluster keeps its current version of the workload until a new work arrives.

    ``pending`` is the work that the cluster would get now; None in records of releases before 0.6.0.
    """

    term: shapes.Count
    step: shapes.Count
    pending: WorkApplied | None = None


Work = WorkApplied | WorkRemoved | WorkSuspended
