"""Table columns of pods and workload kinds."""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.kubeapi.tables.columns.cells import (
    AGE,
    NAME,
    NONE,
    UNSET,
    Column,
    at,
    condition,
    count,
    flag,
    items,
    length,
    number,
    of_pods,
    pairs,
    since,
    text_at,
    wide,
)
from engine.kubeapi.tables.columns.cells import text as column
from engine.kubeapi.values import ages
from events import job_statuses, times
from events.json_values import Json, as_count
from events.json_values import at as value_at
from events.kube_objects import KubeObject

_TEMPLATE: Final = "spec.template"
_SELECTOR: Final = "spec.selector"


_ENDED: Final = ("Succeeded", "Failed")
"""Phases of pods that run no longer."""

_TARGETS_MAX: Final = 2
"""Maximum number of an autoscaler's metrics that a cell lists; if there are more, it ends with ``+ N more...``."""


def _scaled(value: KubeObject, _now: int) -> str:
    return f"{at(value, 'spec.scaleTargetRef.kind')}/{at(value, 'spec.scaleTargetRef.name')}"


def _targets(value: KubeObject, _now: int) -> str:
    """Cell: current and target value of each metric, as ``cpu: 12%/80%``."""
    currents = items(value, "status.currentMetrics")
    metrics = [
        _target(metric, currents[index] if index < len(currents) else {})
        for index, metric in enumerate(items(value, "spec.metrics"))
    ]
    share = at(value, "spec.targetCPUUtilizationPercentage")
    if share is not None:
        used = at(value, "status.currentCPUUtilizationPercentage")
        metrics.append(f"cpu: {'<unknown>' if used is None else f'{used}%'}/{share}%")
    shown = ", ".join(metrics[:_TARGETS_MAX]) or NONE
    return f"{shown} + {len(metrics) - _TARGETS_MAX} more..." if len(metrics) > _TARGETS_MAX else shown


def _target(metric: Json, current: Json) -> str:
    kind = str(metric.get("type", ""))
    source = kind[:1].lower() + kind[1:]
    for field, mark, after in (
        ("averageUtilization", "%", ""),
        ("averageValue", "", " (avg)" if kind in ("Object", "External") else ""),
        ("value", "", ""),
    ):
        target = value_at(metric, source, "target", field)
        if target is not None:
            used = value_at(current, source, "current", field)
            shown = f"{'<unknown>' if used is None else f'{used}{mark}'}/{target}{mark}{after}"
            return f"{value_at(metric, source, 'name')}: {shown}" if kind.endswith("Resource") else shown
    return "<unknown>"


def _pod_ready(value: KubeObject, _now: int) -> str:
    ready = sum(status.get("ready") is True for status in items(value, "status.containerStatuses"))
    return f"{ready}/{len(items(value, 'spec.containers'))}"


def _pod_status(value: KubeObject, _now: int) -> str:
    """Cell: Terminating, or the reason of a waiting or terminated container, or the pod's reason or phase."""
    phase = value.text_at("status", "phase")
    if value.is_ending and phase not in _ENDED:
        return "Terminating"
    reasons = _reasons(items(value, "status.containerStatuses"))
    return next(reasons, value.text_at("status", "reason") or phase)


def _reasons(statuses: list[Json]) -> Iterator[str]:
    for status in statuses:
        for state in ("waiting", "terminated"):
            reason = value_at(status, "state", state, "reason")
            if reason:
                yield str(reason)


def _restarts(value: KubeObject, now_ms: int) -> str:
    statuses = items(value, "status.containerStatuses")
    restarts = sum(as_count(status.get("restartCount")) for status in statuses)
    ended = [
        str(end) for status in statuses if (end := value_at(status, "lastState", "terminated", "finishedAt"))
    ]
    return f"{restarts} ({ages.since(max(ended), now_ms)} ago)" if restarts and ended else str(restarts)


def _gates(value: KubeObject, _now: int) -> str:
    gates = [gate.get("conditionType") for gate in items(value, "spec.readinessGates")]
    passed = sum(condition(value, str(gate)) == "True" for gate in gates)
    return f"{passed}/{len(gates)}" if gates else NONE


def _job_status(value: KubeObject, _now: int) -> str:
    for kind in job_statuses.ENDS:
        if condition(value, kind) == "True":
            return kind
    if value.is_ending:
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if condition(value, kind) == "True":
            return kind
    return "Running"


def _completions(value: KubeObject, _now: int) -> str:
    done, total = at(value, "status.succeeded") or 0, at(value, "spec.completions")
    if total is not None:
        return f"{done}/{total}"
    parallel = at(value, "spec.parallelism")
    return f"{done}/1 of {parallel}" if isinstance(parallel, int) and parallel > 1 else f"{done}/1"


def _job_duration(value: KubeObject, now_ms: int) -> str:
    start, end = at(value, "status.startTime"), at(value, "status.completionTime")
    if not isinstance(start, str):
        return ""
    try:
        until = times.from_text(end) if isinstance(end, str) else now_ms
        return ages.duration((until - times.from_text(start)) // 1000)
    except ValueError:
        return ages.UNKNOWN


def _suspended(value: KubeObject, _now: int) -> str:
    suspended = at(value, "spec.suspend")
    return UNSET if suspended is None else str(suspended is True)


_READY: Final = column(
    "Ready",
    lambda value, _now: f"{at(value, 'status.readyReplicas') or 0}/{at(value, 'spec.replicas') or 0}",
)
_REPLICAS: Final = (
    number("Desired", count("spec.replicas")),
    number("Current", count("status.replicas")),
    number("Ready", count("status.readyReplicas")),
)

COLUMNS: Final[Mapping[tuple[str, str], tuple[Column, ...]]] = {
    ("", "Pod"): (
        NAME,
        column("Ready", _pod_ready),
        column("Status", _pod_status),
        column("Restarts", _restarts),
        AGE,
        *wide(
            column("IP", text_at("status.podIP", NONE)),
            column("Node", text_at("spec.nodeName", NONE)),
            column("Nominated Node", text_at("status.nominatedNodeName", NONE)),
            column("Readiness Gates", _gates),
        ),
    ),
    ("apps", "Deployment"): (
        NAME,
        _READY,
        column("Up-to-date", count("status.updatedReplicas")),
        column("Available", count("status.availableReplicas")),
        AGE,
        *of_pods(_TEMPLATE, chosen=_SELECTOR),
    ),
    ("", "ReplicationController"): (
        NAME,
        *_REPLICAS,
        AGE,
        *of_pods(_TEMPLATE),
        *wide(column("Selector", pairs(_SELECTOR))),
    ),
    ("apps", "ReplicaSet"): (
        NAME,
        *_REPLICAS,
        AGE,
        *of_pods(_TEMPLATE, chosen=_SELECTOR),
    ),
    ("apps", "StatefulSet"): (NAME, _READY, AGE, *of_pods(_TEMPLATE)),
    ("apps", "DaemonSet"): (
        NAME,
        number("Desired", count("status.desiredNumberScheduled")),
        number("Current", count("status.currentNumberScheduled")),
        number("Ready", count("status.numberReady")),
        number("Up-to-date", count("status.updatedNumberScheduled")),
        number("Available", count("status.numberAvailable")),
        column("Node Selector", pairs("spec.template.spec.nodeSelector")),
        AGE,
        *of_pods(_TEMPLATE, chosen=_SELECTOR),
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        NAME,
        column("Reference", _scaled),
        column("Targets", _targets),
        column("MinPods", text_at("spec.minReplicas", UNSET)),
        column("MaxPods", count("spec.maxReplicas")),
        column("Replicas", count("status.currentReplicas")),
        AGE,
    ),
    ("autoscaling", "Scale"): (
        NAME,
        number("Desired", count("spec.replicas")),
        number("Available", count("status.replicas")),
        AGE,
    ),
    ("batch", "Job"): (
        NAME,
        column("Status", _job_status),
        column("Completions", _completions),
        column("Duration", _job_duration),
        AGE,
        *of_pods(_TEMPLATE, chosen=_SELECTOR),
    ),
    ("batch", "CronJob"): (
        NAME,
        column("Schedule", text_at("spec.schedule")),
        column("Timezone", text_at("spec.timeZone", NONE)),
        flag("Suspend", _suspended),
        number("Active", length("status.active")),
        column("Last Schedule", since("status.lastScheduleTime", NONE)),
        AGE,
        *of_pods("spec.jobTemplate.spec.template", chosen="spec.jobTemplate.spec.selector"),
    ),
}
