"""Reports of a member: only changes, and each object at most once per turn.

Replicas that become ready do not change the free capacity: this shift from ``allocating`` to ``allocated`` is
reported with the next change, or after ``SHIFT_MS``. Under load that halves the number of capacity reports. A rollout
is reported at most once per ``SHIFT_MS`` until it ends, so that the number of its reports does not grow with its
pods. A report lost by a fault is sent again after ``RETRY_MS``.
"""

import hashlib
import heapq
import itertools
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from engine.domain import replica_fields
from engine.kubeapi.values import quantity
from engine.objects import status_fields, workloads
from engine.simulation import autoscaler_index, capacity, disruption_budgets, quotas, served_kinds, statuses
from engine.simulation.state import MemberState, ReportCause, Workload
from events import clusters, codec, health, keys, records, shapes, status_values, times, topics
from events.json_values import Json
from events.records import Envelope

SOURCE: Final = "/reballast/members/"
"""Prefix of the CloudEvents source of all member reports."""

RETRY_MS: Final = 1_000
"""Milliseconds after a loss at which the report is sent again."""

SHIFT_MS: Final = 1_000
"""Milliseconds by which the report of a change that leaves the free capacity unchanged is delayed."""

REPORTS_MAX: Final = 1_000
"""Maximum number of workloads that a member reports per turn, so that other members do not wait long."""

_FINGERPRINT_BYTES: Final = 12
_encode = msgspec.msgpack.Encoder(order="deterministic").encode

NO_WORK: Final = ReportCause()
"""Cause of reports about the member itself."""


class Report(NamedTuple):
    """A report: its data, its record key, and the work that caused it."""

    data: shapes.Event
    key: str
    cause: ReportCause


class ReportRecords:
    """Encodes reports. The event id of a report consists of ``start`` and a count.

    ``start`` is the end of the log at the last rebuild of the members: it differs from that of earlier processes. The
    count differs for each report of this process.
    """

    def __init__(self) -> None:
        self.start = 0
        self._count = 0

    def encode(self, member: str, report: Report, now_ms: int) -> records.Record:
        """Return the record of the next report."""
        self._count += 1
        envelope = Envelope(
            id=f"{self.start}-{self._count}",
            source=SOURCE + member,
            type="",
            subject=report.key,
            time=times.to_text(now_ms),
            traceparent=report.cause.trace.parent,
            tracestate=report.cause.trace.state,
            correlationid=report.cause.story,
            causationid=report.cause.position,
        )
        topic = report.data.event_type.topic
        partition = 0 if topic == topics.CLUSTERS else keys.shard_of(report.key)
        return codec.encode(report.data, envelope, partition=partition, key=report.key)


def collect(state: MemberState, at_ms: int) -> list[Report]:
    """Return due reports and mark them as sent; a report that a fault loses is due again after ``RETRY_MS``.

    At most REPORTS_MAX workloads are reported; the others stay ``dirty`` and come first next time.
    """
    if state.retry_ms is not None and at_ms >= state.retry_ms:
        state.dirty.update(state.lost)
        state.lost.clear()
        state.retry_ms = None
        state.capacity_changed = True
    if state.shift_ms is not None and at_ms >= state.shift_ms:
        state.capacity_changed = True
    batch = collect_health(state)
    if state.joined and (apis := served_kinds.report(state)) is not None:
        state.reported_apis = apis.apis
        batch.append(Report(apis, state.spec.name, NO_WORK))
    for key in list(itertools.islice(state.dirty, REPORTS_MAX)):
        del state.dirty[key]
        if (workload := state.workloads.get(key)) is not None:
            disruption_budgets.touch(state, workload)
            if workload.replicas is not None:
                autoscaler_index.touch(state, workload.object_key)
            if _is_held_back(state, workload, at_ms):
                continue
        if not _report_workload(state, key, batch):
            state.lost[key] = None
            _retry(state, at_ms)
    if state.capacity_changed and not _report_capacity(state, batch, at_ms):
        _retry(state, at_ms)
    state.capacity_changed = False
    return batch


def collect_health(state: MemberState) -> list[Report]:
    """Return a health report if the member went up or down.

    No fault loses this report, because it represents an outside observer. A member with an agent does not
    report that it went down, because the agent fails with it.
    """
    ready = not state.faults.cut_off
    if not state.joined or ready == state.reported_ready or (state.spec.has_agent and not ready):
        return []
    state.reported_ready = ready
    reason = "ClusterReady" if ready else "ClusterNotReachable"
    message = "cluster is healthy and ready to accept workloads" if ready else "cluster is not reachable"
    data = clusters.ClusterHealthChanged(name=state.spec.name, ready=ready, reason=reason, message=message)
    return [Report(data, state.spec.name, NO_WORK)]


def set_joined(state: MemberState, *, joined: bool) -> None:
    """Record that the member joined or left; when it joins again it reports its own state from scratch."""
    if state.joined and not joined:
        state.reported_capacity = state.reported_ready = state.shift_ms = None
        state.reported_apis = None
    state.joined = joined
    state.capacity_changed = True


def is_current(state: MemberState, key: str) -> bool:
    """Whether a new report on a workload would equal the last one."""
    workload = state.workloads.get(key)
    return (
        workload is not None
        and key not in state.gone
        and workload.reported == fingerprint(workload_report(state, workload))
    )


def workload_report(state: MemberState, workload: Workload) -> health.WorkloadReported:
    """Return the report on a workload; kinds with neither replicas nor a simulated status are always healthy."""
    term, step = workload.version
    if workloads.is_single(workload.ref.api_version, workload.ref.kind):
        count = ready = 1
    else:
        count, ready = workload.admitted + workload.pending, workload.ready
    kind = workload.ref.api_version, workload.ref.kind
    is_read = workload.source.reading is not None or status_values.is_whole(*kind)
    shown = statuses.status(state, workload) if is_read else {}
    reading = workload.source.reading
    is_ready = ready == count and not workload.former_pods and not quotas.has_refused_pods(state, workload)
    if workload.template.budget is not None and shown:
        is_ready = disruption_budgets.is_met(shown)
    generation = workload.generation if kind in status_values.GENERATION_KINDS else 0
    return health.WorkloadReported(
        cluster=state.spec.name,
        key=workload.key,
        term=term,
        step=step,
        replicas=count,
        updated=workload.updated if workload.former_pods else count,
        ready=ready,
        available=ready,
        healthy=_is_healthy(workload, shown, is_ready=is_ready),
        fault=workload.fault,
        values=status_fields.values(shown, reading),
        generation=generation,
        observed_generation=generation,
        status=status_fields.whole(*kind, shown, reading),
    )


def _is_healthy(workload: Workload, shown: Json, *, is_ready: bool) -> bool:
    """Return the health of a workload by the rules of its kind.

    Return ``is_ready`` if the status ``shown`` has none of the values that these rules read.

    The simulation computes only counts in a status; other values come from the template's annotation or from clients.
    """
    reading, ref = workload.source.reading, workload.ref
    is_written = workload.template.status or workload.kept.status
    if reading is None or not (is_written or status_fields.has_judged_values(shown, reading)):
        return is_ready
    value: Json = {"metadata": {"generation": max(workload.generation, 1)}, "status": shown}
    if workload.replicas is not None:
        path = replica_fields.path_of(ref.api_version, ref.kind, reading.replicas)
        value = replica_fields.with_field(value, path, workload.replicas)
    return status_fields.is_healthy(value, reading, otherwise=is_ready)


def fingerprint(report: health.WorkloadReported) -> bytes:
    """Return the digest of a report, which a member keeps instead of the whole report of each of its workloads."""
    return hashlib.blake2b(_encode(report), digest_size=_FINGERPRINT_BYTES).digest()


def capacity_report(state: MemberState) -> clusters.CapacityReported:
    """Return the member's capacity, the use by running replicas, and the use by starting and pending replicas.

    A ``modelled`` cluster repeats the numbers of nodes, in total and by grade, from the real cluster's last report.
    """
    sums = state.capacity
    nodes = state.spec.node_count
    last = state.reported_capacity if state.spec.modelled else None
    return clusters.CapacityReported(
        name=state.spec.name,
        allocatable=capacity.total_quantities(sums, sums.allocatable),
        allocated=capacity.total_quantities(sums, sums.running),
        allocating=capacity.total_quantities(sums, sums.starting, sums.pending),
        modelings=() if last is None else last.modelings,
        nodes=nodes if last is None else last.nodes,
        nodes_ready=nodes if last is None else last.nodes_ready,
        quotas=tuple(quotas.free(state)) if state.quotas else (),
    )


def _report_workload(state: MemberState, key: str, batch: list[Report]) -> bool:
    """Report a workload or its removal, if it has changed; return False only if a fault lost the report."""
    removal = state.gone.get(key)
    if removal is not None:
        term, step = removal.version
        data = health.WorkloadGone(cluster=state.spec.name, key=key, term=term, step=step)
        if not _is_sent(state):
            return False
        del state.gone[key]
        batch.append(Report(data, key, removal.cause))
        return True
    workload = state.workloads.get(key) or state.refused.get(key)
    if workload is None or workload.preserved or workload.is_unmanaged:
        return True
    report = workload_report(state, workload)
    digest = fingerprint(report)
    if digest == workload.reported:
        return True
    if not _is_sent(state):
        return False
    workload.reported = digest
    batch.append(Report(report, key, workload.cause))
    return True


def _is_held_back(state: MemberState, workload: Workload, at_ms: int) -> bool:
    """Whether a report on a rollout waits because the last one is too recent.

    The end of a rollout is reported at once.
    """
    if not workload.former_pods or workload.is_unmanaged:
        return False
    if at_ms < workload.held_until_ms:
        return True
    workload.held_until_ms = at_ms + SHIFT_MS
    heapq.heappush(state.starts, (workload.held_until_ms, workload.key))
    return False


def _is_rolling(state: MemberState) -> bool:
    """Whether any rollout replaces pods; each replaced pod changes the use of capacity."""
    for key in list(state.rolling):
        workload = state.workloads.get(key)
        if workload is not None and workload.former_pods:
            return True
        del state.rolling[key]
    return False


def _report_capacity(state: MemberState, batch: list[Report], at_ms: int) -> bool:
    if not state.joined:
        return True
    report = capacity_report(state)
    if report == state.reported_capacity:
        state.shift_ms = None
        return True
    previous = state.reported_capacity
    is_shift = previous is not None and _without_shift(report) == _without_shift(previous)
    if previous is not None and (is_shift or _is_rolling(state)):
        state.shift_ms = at_ms + SHIFT_MS if state.shift_ms is None else state.shift_ms
        if at_ms < state.shift_ms:
            return True
    state.shift_ms = None
    if not _is_sent(state):
        return False
    state.reported_capacity = report
    batch.append(Report(report, state.spec.name, NO_WORK))
    return True


def _without_shift(report: clusters.CapacityReported) -> clusters.CapacityReported:
    """Return the report with ``allocating`` added to ``allocated``; replicas that become ready do not change it."""
    used = {
        resource: quantity.of_nano(
            resource,
            quantity.nano_units(report.allocated.get(resource, "0"))
            + quantity.nano_units(report.allocating.get(resource, "0")),
        )
        for resource in {**report.allocated, **report.allocating}
    }
    return structs.replace(report, allocated=used, allocating={})


def _retry(state: MemberState, at_ms: int) -> None:
    if state.retry_ms is None:
        state.retry_ms = at_ms + RETRY_MS


def _is_sent(state: MemberState) -> bool:
    """Count a report; return False if a fault loses it."""
    state.reports += 1
    return not state.faults.lose_every or state.reports % state.faults.lose_every != 0
