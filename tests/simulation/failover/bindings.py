"""The bindings as the log shows them: assignments, evictions, works, and reports of members."""

from typing import Any

import msgspec

from events import decisions, health

_GRACE_MS = 600_000
Version = tuple[int, int]


class Report(msgspec.Struct):
    """The newest report of a cluster; ``unhealthy_ms`` is the time of the step that first knew of it."""

    version: Version
    healthy: bool
    fault: bool
    ready: int
    unhealthy_ms: int = 0


class Work(msgspec.Struct):
    """A work; ``first`` is its version when the cluster got it after having none.

    With overrides, these define how many replicas are enough.
    """

    version: Version
    first: Version
    is_overridden: bool = False


class Tracked(msgspec.Struct):
    """The state of a binding that failover depends on."""

    replicas: int = 0
    is_job: bool = False
    """Whether it is a Job, whose pods end: it is healthy if those that must still run are ready."""
    divided: bool = False
    placement: dict[str, Any] = {}
    applied: dict[str, Any] = {}
    failover: decisions.ApplicationFailover | None = None
    clusters: dict[str, int] = {}
    scheduled: bool = False
    is_imported: bool = False
    """Whether the assignment is an imported one, which may name clusters that an eviction has not left yet."""
    tasks: dict[str, decisions.EvictionStarted] = {}
    works: dict[str, Work] = {}
    reports: dict[str, Report] = {}
    allowed: set[str] = set()
    """Clusters from which the evicted workload may be deleted, as allowed during the eviction."""
    required: dict[str, tuple[str, ...]] = {}
    """Clusters by binding that depends on this one; it stays there even if evicted."""

    @property
    def is_shared(self) -> bool:
        """Whether each cluster has replicas of its own: divided or imported ones, or those of overflow tiers."""
        groups = self.placement.get("clusterAffinities", [])
        return self.divided or self.is_imported or any("overflowAffinities" in group for group in groups)


def runs(binding: Tracked, cluster: str) -> bool:
    report = binding.reports.get(cluster)
    return report is not None and (report.ready > 0 or report.healthy)


def is_last_copy(binding: Tracked, task: decisions.EvictionStarted) -> bool:
    """Whether a graceful eviction would remove the only running copy of a workload.

    A cluster without a report counts as running it if the binding has no assignment.
    """
    is_graceful = task.purge_mode != "Directly" and not task.held
    if not binding.clusters and task.cluster not in binding.reports:
        return is_graceful
    return (
        is_graceful
        and runs(binding, task.cluster)
        and not any(runs(binding, name) for name in binding.clusters)
    )


def fold_decision(bindings: dict[str, Tracked], data: object) -> None:
    match data:
        case decisions.BindingDeclared(key=key, replicas=replicas, template=ref):
            binding = bindings.setdefault(key, Tracked())
            binding.replicas, binding.is_job = replicas or 0, ref.kind == "Job"
        case decisions.BindingClaimed(key=key, placement=placement, failover=failover):
            binding = bindings[key]
            binding.placement, binding.failover = msgspec.json.decode(placement), failover
            kind = binding.placement.get("replicaScheduling", {}).get("replicaSchedulingType")
            binding.divided = kind == "Divided"
        case decisions.BindingReleased(key=key) if key in bindings:  # otherwise the end of a mark
            binding = bindings[key]
            binding.placement, binding.failover = binding.applied, None
        case decisions.BindingRequired(key=key, required_by=required_by):
            bindings[key].required |= {f"{by.namespace}/{by.name}": by.clusters for by in required_by}
        case decisions.BindingWithdrawn(key=key):
            bindings[key] = Tracked(works=bindings[key].works)
        case decisions.ScheduleDecided(key=key, clusters=targets):
            binding = bindings[key]
            binding.clusters = {target.name: target.replicas for target in targets}
            binding.applied, binding.scheduled = binding.placement, True
            binding.is_imported = data.trigger == "Imported"
        case decisions.ScheduleFailed(key=key, emptied=emptied):
            binding = bindings[key]
            binding.scheduled = False
            if emptied:
                binding.clusters, binding.applied = {}, binding.placement
        case _:
            pass


def fold_report(bindings: dict[str, Tracked], data: object) -> None:
    """Fold a member's report if it is about a work that the cluster still has."""
    if not isinstance(data, health.WorkloadReported | health.WorkloadGone):
        return
    binding = bindings.get(data.key, Tracked())
    work, known = binding.works.get(data.cluster), binding.reports.get(data.cluster)
    version = (data.term, data.step)
    if isinstance(data, health.WorkloadGone):
        if known and version >= known.version:
            del binding.reports[data.cluster]
    elif work and version >= work.first and (known is None or version >= known.version):
        since = known.unhealthy_ms if known and not data.healthy else 0
        binding.reports[data.cluster] = Report(version, data.healthy, bool(data.fault), data.ready, since)


def evicts(placement: dict[str, Any], mark: tuple[str, str], since_ms: int, time_ms: int) -> bool:
    """Whether a taint evicts workloads with this placement by now."""
    if mark[1] != "NoExecute":
        return False
    for toleration in placement.get("clusterTolerations", []):
        if toleration["key"] == mark[0]:
            seconds = toleration.get("tolerationSeconds")
            return seconds is not None and since_ms + seconds * 1_000 <= time_ms
    return True


def tolerated_ms(binding: Tracked) -> int:
    return binding.failover.toleration_seconds * 1_000 if binding.failover else 0


def grace_ms(task: decisions.EvictionStarted) -> int:
    return _GRACE_MS if task.grace_period_seconds is None else task.grace_period_seconds * 1_000
