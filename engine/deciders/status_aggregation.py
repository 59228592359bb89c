"""Aggregate the reports of members on a workload into one status."""

import re
from typing import Final

from msgspec import structs

from engine.deciders import (
    apply_decisions,
    quota_assignments,
    record_sizes,
    required_bindings,
)
from engine.deciders.state import Binding, Report
from engine.deciders.step_outputs import Outputs, View
from engine.objects import interpreters
from events import decisions, enums, limits, shapes

_COUNT: Final = re.compile(r"-?[0-9]{1,15}")
_LARGEST: Final = 2**63 - 1


def decide(binding: Binding, view: View) -> Outputs[None]:
    """Emit the aggregated status if it differs from the last one.

    The first status is emitted after the first report, or while dispatching is suspended, as reports may never come.
    """
    if binding.declared is None:
        yield from _aggregate_quotas(binding)
        return
    targets = required_bindings.targets(view.shard, binding)
    # A cluster under graceful eviction is included as long as it reports.
    members = tuple(
        _member(name, binding.reports.get(name))
        for name in sorted(binding.works)
        if name in targets or name in binding.reports
    )
    if sum(len(member.status) for member in members) > limits.STATUSES_CHARS_MAX:
        members = tuple(structs.replace(member, status="") for member in members)
    interpreter = view.facts.interpreter(binding.declared.ref)
    aggregated = decisions.StatusAggregated(
        key=binding.key,
        members=_bounded(members),
        observed_generation=binding.declared.generation,
        fully_applied=bool(targets)
        and all((report := binding.reports.get(name)) is not None and not report.fault for name in targets),
        fields=_fields(members, interpreter.spec.status_fields) if interpreter else {},
        whole=interpreter is not None and interpreter.spec.whole_status,
    )
    if not members and not binding.shown:
        return
    if apply_decisions.shown_digest(aggregated) != binding.shown:
        yield aggregated


def _aggregate_quotas(binding: Binding) -> Outputs[None]:
    """Emit the status of quotas that a FederatedResourceQuota assigns to clusters, if it differs from the last one."""
    members = tuple(_member(name, binding.reports.get(name)) for name in sorted(binding.works))
    if not members and not binding.shown:
        return
    aggregated = decisions.StatusAggregated(
        key=binding.key,
        members=_bounded(members),
        fully_applied=bool(members) and all(member.applied for member in members),
        fields=quota_assignments.overall_used(members),
    )
    if apply_decisions.shown_digest(aggregated) != binding.shown:
        yield aggregated


def _bounded(members: tuple[decisions.MemberStatus, ...]) -> tuple[decisions.MemberStatus, ...]:
    """Return the statuses; if they are too large for a record, without details and with shortened messages."""
    if record_sizes.fits(members):
        return members
    return tuple(
        structs.replace(member, status="", values={}, message=limits.shortened(member.message))
        for member in members
    )


def _fields(
    members: tuple[decisions.MemberStatus, ...], declared: tuple[interpreters.StatusField, ...]
) -> dict[str, shapes.Whole | str]:
    """Aggregate the values of the members' statuses by the rules declared for the kind."""
    values: dict[str, shapes.Whole | str] = {}
    for field in declared:
        texts = [text for member in members if (text := member.values.get(field.json_path)) is not None]
        value = _aggregate_values(field.aggregate, texts)
        if value is not None:
            values[field.json_path] = value
    return values


def _aggregate_values(aggregate: interpreters.Aggregate, texts: list[str]) -> int | str | None:
    """Combine the members' values; Sum and Max ignore those that are not whole numbers. None if there is no value."""
    if aggregate == "First":
        return texts[0] if texts else None
    if aggregate == "Last":
        return next((text for text in reversed(texts) if text), None)
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
        generation=report.generation,
        observed_generation=report.observed_generation,
        template_generation=report.template_generation if report.generation else 0,
        status=report.status,
    )


def _health(report: Report) -> enums.Health:
    """Return the reported health; with a fault it is unknown, since the cluster runs an older work or none."""
    if report.fault:
        return enums.Health.UNKNOWN
    return enums.Health.HEALTHY if report.healthy else enums.Health.UNHEALTHY
