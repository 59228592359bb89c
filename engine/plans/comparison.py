"""Compare an engine before and after a change: its bindings, and the records added in between. Pure functions."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct, structs

from engine.deciders import scheduling
from engine.deciders.facts import Facts
from engine.deciders.shard_fold import ShardFold
from engine.deciders.state import Binding
from engine.domain import bindings
from engine.kubeapi.values import quantity
from engine.objects import workloads
from engine.placement import missing_capacity
from engine.plans.predictions import ClusterChange, PredictedEvent, Prediction, WorkloadChange
from events import catalogue, clusters, codec, decisions, health, shapes, times, topics
from events.records import StoredRecord

EVENTS_MAX: Final = 10_000
"""Maximum number of events in a prediction."""

_NEEDED: Final = frozenset({topics.HEALTH, topics.CLUSTERS, topics.REJECTIONS})
_ABOUT_BINDINGS: Final = frozenset({topics.DECISIONS, topics.HEALTH})
"""Topics in which bindings are the subjects of some records."""

_SETTLED_BY: Final = frozenset({topics.DECISIONS, topics.WORKS})
_UNCOUNTED: Final = catalogue.types_of(decisions.StepTaken, decisions.StatusAggregated)

_WORKLOADS_MAX: Final = 1_000
"""Maximum number of workloads for which a prediction has ``needed_in``; it stays empty for any further ones."""

_CLUSTERS_MAX: Final = 100
"""Maximum number of clusters in need of capacity that a prediction names for one workload."""


class Workload(Struct, frozen=True, kw_only=True, gc=False):
    """A binding at one time: its clusters with their replicas, its condition, and the ready replicas by cluster.

    ``replicas`` is the number in its template, 0 for kinds without replicas; ``requests`` are those of each replica.
    ``evicted`` has the replicas in clusters that keep them until an eviction ends.
    """

    template: shapes.WorkloadRef
    replicas: int
    requests: workloads.Requests
    clusters: dict[str, int]
    condition: str
    message: str
    ready: dict[str, int]
    evicted: dict[str, int]


class Start(Struct, frozen=True):
    """The declared bindings of an engine before a change, their keys by cluster, and clusters' capacity reports."""

    workloads: dict[str, Workload]
    keys_in: dict[str, list[str]]
    capacity: dict[str, clusters.CapacityReported]


NOTHING: Final = Start({}, {}, {})


def start_of(folds: Iterable[ShardFold], capacity: dict[str, clusters.CapacityReported]) -> Start:
    """Return the state of an engine before a change, with which the state after the change is compared."""
    workloads = {key: workload for fold in folds for key, workload in _workloads(fold, fold.state.bindings)}
    keys_in: dict[str, list[str]] = {}
    for key, workload in workloads.items():
        for name in workload.clusters.keys() | workload.ready.keys():
            keys_in.setdefault(name, []).append(key)
    return Start(workloads, keys_in, capacity)


def compared(
    start: Start, folds: Sequence[ShardFold], records: Sequence[StoredRecord], failed: Collection[str]
) -> tuple[dict[str, Workload], dict[str, Workload]]:
    """Return the workloads before the change and now that may differ, by binding key.

    Those are the subjects of the records, and the workloads that ran in ``failed`` clusters.
    """
    # The key of a decision's record is its shard; the subject is the binding.
    touched = {record.headers.get("ce_subject", "") for record in records if record.topic in _ABOUT_BINDINGS}
    for name in failed:
        touched.update(start.keys_in.get(name, ()))
    before = {key: start.workloads[key] for key in touched if key in start.workloads}
    return before, {key: workload for fold in folds for key, workload in _workloads(fold, touched)}


def _workloads(fold: ShardFold, keys: Iterable[str]) -> Iterator[tuple[str, Workload]]:
    """Yield (key, workload) for each key that is a declared binding of the shard."""
    for key in keys:
        if (binding := fold.state.bindings.get(key)) is not None and binding.declared is not None:
            yield key, _workload(binding)


def changes(
    before: Mapping[str, Workload],
    after: Mapping[str, Workload],
    recorded: Sequence[codec.Decoded],
    decided_ms: Mapping[str, int],
    failed: Collection[str] = (),
    unready: Collection[str] = (),
) -> list[WorkloadChange]:
    """Return the workloads whose clusters or condition differ, or that lost ready replicas in between, sorted by key.

    ``decided_ms`` has the virtual time of the first decision about each workload, in milliseconds.
    ``failed`` are the clusters that fail or are not ready at the end, ``unready`` those that were not ready before.
    Replicas in these clusters are not ready, whatever the clusters reported last.
    """
    lowest = _lowest_ready(before, recorded, {*failed, *unready})
    result: list[WorkloadChange] = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        known = new or old
        if known is None:
            continue
        ready = sum(_without(old.ready, unready).values()) if old else 0
        running = _without(new.evicted, failed) if new else {}
        change = WorkloadChange(
            key=key,
            template=known.template,
            before=old.clusters if old else {},
            after=new.clusters if new else {},
            condition=new.condition if new else "",
            message=new.message if new else "",
            decided_ms=decided_ms.get(key),
            stopped=_excess(old.clusters if old else {}, running | new.clusters if new else {}),
            started=_excess(new.clusters if new else {}, old.clusters if old else {}),
            ready_before=ready,
            ready_min=min(lowest.get(key, ready), ready),
            ready_after=sum(_without(new.ready, failed).values()) if new else 0,
            missing=_missing(new, failed),
            # Replicas that stay assigned to a failed cluster need no capacity elsewhere: nothing evicts them.
            unassigned=_missing(new, ()),
            missing_requests=_multiplied(known.requests, _missing(new, ())),
            running=running,
        )
        if change.before != change.after or change.ready_min < ready or _condition(old) != _condition(new):
            result.append(change)
    return result


def caused(prediction: Prediction, unchanged: Prediction) -> Prediction:
    """Remove effects from a prediction that ``unchanged``, the prediction without the change, has as well."""
    others = {change.key: change for change in unchanged.changed}
    unplaced = frozenset(unchanged.unplaced)
    loads_by_name = {load.name: load for load in unchanged.clusters}
    return structs.replace(
        prediction,
        changed=[change for change in prediction.changed if change != others.get(change.key)],
        unplaced=[key for key in prediction.unplaced if key not in unplaced],
        clusters=[load for load in prediction.clusters if load != loads_by_name.get(load.name)],
        unrelated=[change.key for change in prediction.changed if change == others.get(change.key)],
    )


def with_needed_capacity(
    changes: Iterable[WorkloadChange], folds: Sequence[ShardFold], facts: Facts, failed: Collection[str]
) -> list[WorkloadChange]:
    """Return the changes with ``needed_in`` set: working clusters where more capacity would place missing replicas."""
    result = list(changes)
    for index in [index for index, change in enumerate(result) if change.missing][:_WORKLOADS_MAX]:
        change = result[index]
        fold = next((fold for fold in folds if change.key in fold.state.bindings), None)
        if fold is not None:
            names = _helpful_clusters(fold, change.key, facts)
            helpful = [name for name in names if name not in failed]
            result[index] = structs.replace(change, needed_in=helpful[:_CLUSTERS_MAX])
    return result


def newly_unplaced(before: Mapping[str, Workload], after: Mapping[str, Workload]) -> list[str]:
    """Return the keys of the bindings whose scheduling fails at the end, and did not fail before."""
    return [
        key
        for key, workload in sorted(after.items())
        if _is_unplaced(workload) and not _is_unplaced(before.get(key))
    ]


def loads(
    before: Mapping[str, clusters.CapacityReported], recorded: Sequence[codec.Decoded]
) -> list[ClusterChange]:
    """Return the clusters whose used resources change, sorted by name."""
    used = {name: _used(report) for name, report in before.items()}
    last, peak = dict(used), {name: dict(sums) for name, sums in used.items()}
    newest = dict(before)
    for event in recorded:
        if isinstance(data := event.data, clusters.CapacityReported):
            newest[data.name] = data
            last[data.name] = _used(data)
            highest = peak.setdefault(data.name, {})
            for resource, amount in last[data.name].items():
                highest[resource] = max(highest.get(resource, 0), amount)
    return [
        ClusterChange(
            name=name,
            allocatable=newest[name].allocatable,
            before=quantity.texts(used.get(name, {})),
            after=quantity.texts(last[name]),
            peak=quantity.texts(peak[name]),
        )
        for name in sorted(last)
        if peak[name] != used.get(name) or last[name] != used.get(name)
    ]


def events(decoded: Sequence[codec.Decoded], began_ms: int) -> list[PredictedEvent]:
    """Convert events for a prediction; ``began_ms`` is the start of its virtual time."""
    return [
        PredictedEvent(
            after_ms=max(times.from_text(event.envelope.time) - began_ms, 0),
            type=event.envelope.type,
            subject=event.envelope.subject,
            cause=event.envelope.causationid,
            data=msgspec.json.decode(codec.encode_data(event.data), type=dict[str, object]),
        )
        for event in decoded
    ]


def decoded(records: Sequence[StoredRecord]) -> tuple[list[codec.Decoded], int]:
    """Return the events in records, in order and without steps, and the number of events that were left out.

    All health reports, cluster events and rejections are returned, since predictions are computed from them. Once the
    result has EVENTS_MAX events, other events are left out.
    """
    result: list[codec.Decoded] = []
    omitted = 0
    for record in records:
        if record.headers["ce_type"] == catalogue.STEP_TAKEN:
            continue
        if len(result) >= EVENTS_MAX and record.topic not in _NEEDED:
            omitted += 1
        elif isinstance(event := codec.decode(record), codec.Decoded):
            result.append(event)
    return result, omitted


def first_decisions_ms(records: Sequence[StoredRecord], began_ms: int) -> dict[str, int]:
    """Return the virtual time in milliseconds of the first decision about each binding; ``began_ms`` is the start."""
    first_ms: dict[str, int] = {}
    for record in records:
        if record.topic == topics.DECISIONS and record.headers["ce_type"] not in _UNCOUNTED:
            subject = record.headers.get("ce_subject", "")
            if subject not in first_ms:
                first_ms[subject] = times.from_text(record.headers["ce_time"]) - began_ms
    return first_ms


def settled_ms(records: Sequence[StoredRecord], began_ms: int, before: Mapping[str, Workload]) -> int:
    """Return the virtual time in milliseconds until a decision or work last changed a binding; 0 if none did.

    Changes of aggregated statuses are ignored, since the status of a CronJob changes forever. Reports that change the
    number of ready replicas count too, since replicas start later than their work; ``before`` has the initial numbers.
    """
    last = 0
    ready = {(name, key): count for key, workload in before.items() for name, count in workload.ready.items()}
    for record in records:
        if record.topic in _SETTLED_BY and record.headers["ce_type"] not in _UNCOUNTED:
            last = max(last, times.from_text(record.headers["ce_time"]) - began_ms)
        elif record.topic == topics.HEALTH:
            data = codec.event_of(record)
            if (
                isinstance(data, health.WorkloadReported)
                and ready.get((data.cluster, data.key)) != data.ready
            ):
                ready[data.cluster, data.key] = data.ready
                last = max(last, times.from_text(record.headers["ce_time"]) - began_ms)
    return last


def _workload(binding: Binding) -> Workload:
    assert binding.declared is not None  # noqa: S101  # the caller leaves out others
    return Workload(
        template=binding.declared.ref,
        replicas=binding.declared.replicas or 0,
        requests=binding.declared.requests or (),
        clusters=dict(binding.clusters),
        condition=binding.condition,
        message=binding.message,
        ready={name: report.ready for name, report in binding.reports.items()},
        evicted={task.cluster: task.replicas for task in binding.tasks if task.cluster in binding.works},
    )


def _missing(workload: Workload | None, failed: Collection[str]) -> int:
    if workload is None:
        return 0
    return max(workload.replicas - sum(_without(workload.clusters, failed).values()), 0)


def _multiplied(requests: workloads.Requests, count: int) -> dict[str, str]:
    """Return the requests of a number of replicas, as Kubernetes quantities."""
    return (
        quantity.texts({name: quantity.nano_units(text) * count for name, text in requests}) if count else {}
    )


def _without(ready: Mapping[str, int], failed: Collection[str]) -> dict[str, int]:
    return {name: count for name, count in ready.items() if name not in failed}


def _lowest_ready(
    before: Mapping[str, Workload], recorded: Sequence[codec.Decoded], failed: Collection[str]
) -> dict[str, int]:
    """Return the smallest number of ready replicas of each workload; none is ready in ``failed`` at the start."""
    ready = {key: _without(workload.ready, failed) for key, workload in before.items()}
    lowest = {key: sum(counts.values()) for key, counts in ready.items()}
    for event in recorded:
        data = event.data
        if isinstance(data, health.WorkloadReported):
            ready.setdefault(data.key, {})[data.cluster] = data.ready
        elif isinstance(data, health.WorkloadGone):
            ready.setdefault(data.key, {}).pop(data.cluster, None)
        else:
            continue
        now = sum(ready[data.key].values())
        lowest[data.key] = min(lowest.get(data.key, now), now)
    return lowest


def _excess(replicas: Mapping[str, int], others: Mapping[str, int]) -> int:
    """Return the sum, over all clusters, of the replicas beyond those that ``others`` has in the same cluster."""
    return sum(max(count - others.get(name, 0), 0) for name, count in replicas.items())


def _condition(workload: Workload | None) -> str:
    return workload.condition if workload else ""


def _is_unplaced(workload: Workload | None) -> bool:
    return workload is not None and workload.condition not in {"", bindings.SUCCESS}


def _used(report: clusters.CapacityReported) -> dict[str, int]:
    """Return the sums of allocated resources and of those about to be allocated, in billionths of their units."""
    return quantity.totals([report.allocated, report.allocating])


def _helpful_clusters(fold: ShardFold, key: str, facts: Facts) -> tuple[str, ...]:
    """Return the clusters in which more capacity helps a binding; none if capacity alone would not help."""
    binding = fold.state.bindings[key]
    if binding.declared is None or binding.claim is None:
        return ()
    request = scheduling.request_of(
        binding, binding.declared, binding.claim, facts, fold.placements, fold.state
    )
    shortage = missing_capacity.Shortage(request, facts.fleet)
    return shortage.clusters if shortage.exists else ()
