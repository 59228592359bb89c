"""Aggregating what the members report of a workload into one status."""

import re
from typing import Final

from engine.deciders import emitting, evolve, requiring
from engine.deciders.facts import Facts
from engine.deciders.state import Binding, Report
from engine.objects import interpreters
from events import decisions, enums, shapes

_COUNT: Final = re.compile(r"-?[0-9]{1,15}")
_LARGEST: Final = 2**63 - 1


def decide(binding: Binding, facts: Facts, emit: emitting.Emitter) -> None:
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
        fields=_fields(members, facts.status_fields(binding.declared.ref)),
    )
    if not members and not binding.shown:
        return
    if evolve.shown_digest(aggregated) != binding.shown:
        emit.decide(aggregated, binding.key)


def _fields(
    members: tuple[decisions.MemberStatus, ...], declared: tuple[interpreters.StatusField, ...]
) -> dict[str, shapes.Whole | str]:
    """What stands for the values of the members' statuses, as it is declared of the kind."""
    found: dict[str, shapes.Whole | str] = {}
    for field in declared:
        texts = [text for each in members if (text := each.values.get(field.json_path)) is not None]
        value = _put_together(field.aggregate, texts)
        if value is not None:
            found[field.json_path] = value
    return found


def _put_together(aggregate: interpreters.Aggregate, texts: list[str]) -> int | str | None:
    """One value for those of several members; what is no whole number neither adds up nor is the largest."""
    if aggregate == "First":
        return texts[0] if texts else None
    counts = [int(text) for text in texts if _COUNT.fullmatch(text)]
    if not counts:
        return None
    return min(sum(counts), _LARGEST) if aggregate == "Sum" else max(counts)


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


def _health(report: Report) -> enums.Health:
    """What runs in spite of a fault is not what was meant, so its health says nothing."""
    if report.fault:
        return enums.Health.UNKNOWN
    return enums.Health.HEALTHY if report.healthy else enums.Health.UNHEALTHY
