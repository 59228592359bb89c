"""Aggregating what the members report of a workload into one status."""

from engine.deciders import emitting, evolve, requiring
from engine.deciders.state import Binding, Report
from events import decisions


def decide(binding: Binding, emit: emitting.Emitter) -> None:
    """Emits the aggregated status where it differs from the one that was shown last."""
    if binding.declared is None:
        return
    targets = {name for name, _ in binding.clusters} | requiring.clusters(emit.shard, binding.key)
    # A cluster that the binding leaves gracefully is shown as long as it runs something.
    members = tuple(
        _member(name, binding.reports.get(name))
        for name in sorted(binding.works)
        if name in targets or name in binding.reports
    )
    aggregated = decisions.StatusAggregated(
        key=binding.key,
        members=members,
        observed_generation=binding.declared.generation,
        fully_applied=bool(targets)
        and all((report := binding.reports.get(name)) is not None and not report.fault for name in targets),
    )
    if not members and not binding.shown:
        return
    if evolve.shown_digest(aggregated) != binding.shown:
        emit.decide(aggregated, binding.key)


def _member(cluster: str, report: Report | None) -> decisions.MemberStatus:
    if report is None:
        return decisions.MemberStatus(cluster=cluster, applied=False)
    return decisions.MemberStatus(
        cluster=cluster,
        applied=not report.fault,
        health=_health(report),
        replicas=report.replicas,
        updated=report.updated,
        ready=report.ready,
        available=report.available,
        message=report.fault,
        values=report.values,
    )


def _health(report: Report) -> str:
    """What runs in spite of a fault is not what was meant, so its health says nothing."""
    if report.fault:
        return "Unknown"
    return "Healthy" if report.healthy else "Unhealthy"
