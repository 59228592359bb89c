"""Status of workloads as a member's own API shows it, computed from their replica counts."""

from collections.abc import Mapping
from typing import Final, TypedDict

from engine.simulation import (
    addresses,
    autoscaling,
    cron_jobs,
    disruption_budgets,
    quotas,
    replica_sets,
    replicas,
)
from engine.simulation.state import MemberState, Workload
from events import times, vocabulary
from events.json_values import Json, decoded
from events.kube_fields import Condition, condition

_PHASES: Final = {
    ("v1", "Namespace"): {"phase": "Active"},
    ("v1", "PersistentVolume"): {"phase": "Available"},
    ("v1", "PersistentVolumeClaim"): {"phase": "Bound"},
}
"""Phases of kinds whose objects are available at once, since the simulation has nothing to wait for."""


class _JobStatus(TypedDict, total=False):
    ready: int
    startTime: str
    active: int
    succeeded: int
    completionTime: str
    conditions: list[Condition]


class _PodStatus(TypedDict):
    phase: str
    podIP: str
    podIPs: list[Json]
    conditions: list[Condition]
    containerStatuses: list[Json]


class _DaemonSetStatus(TypedDict):
    currentNumberScheduled: int
    desiredNumberScheduled: int
    updatedNumberScheduled: int
    numberReady: int
    numberAvailable: int
    numberMisscheduled: int
    observedGeneration: int


class _ReplicasStatus(TypedDict, total=False):
    observedGeneration: int
    replicas: int
    updatedReplicas: int
    readyReplicas: int
    availableReplicas: int
    fullyLabeledReplicas: int
    unavailableReplicas: int
    currentReplicas: int
    currentRevision: str
    updateRevision: str
    collisionCount: int
    conditions: list[Condition]


def status(state: MemberState, workload: Workload) -> Json:
    """Return the status of a workload in a member.

    It has the workload's replica counts or addresses, the simulated status in its template, and clients' writes.
    """
    if workload.replicas is not None:
        return {
            **decoded(workload.template.status),
            **decoded(workload.kept.status),
            **_replica_status(state, workload),
        }
    kind = workload.ref.api_version, workload.ref.kind
    cluster, budget = state.spec.name, workload.template.budget
    built_in: Mapping[str, object]
    if kind == vocabulary.POD:
        built_in = _pod_status(cluster, workload)
    elif kind == vocabulary.CRON_JOB:
        built_in = cron_jobs.status(workload)
    elif budget is not None:
        built_in = disruption_budgets.status(state, workload, budget)
    elif workload.template.scaler is not None:
        built_in = autoscaling.status(state, workload, workload.template.scaler)
    elif workload.template.quota is not None:
        built_in = quotas.status(state, workload.ref.namespace, workload.template.quota)
    elif workload.template.is_balanced:
        ref = workload.ref
        address = addresses.of_balancer(cluster, ref.namespace, f"{ref.kind}/{ref.name}")
        # Only addresses of a Service have an ``ipMode``; those of an Ingress have none.
        mode = {"ipMode": "VIP"} if ref.kind == "Service" else {}
        built_in = {"loadBalancer": {"ingress": [{"ip": address, **mode}]}}
    else:
        built_in = _PHASES.get(kind, {})
    return {**built_in, **decoded(workload.template.status), **decoded(workload.kept.status)}


def _job_status(workload: Workload) -> _JobStatus:
    active = workload.admitted + workload.pending
    status: _JobStatus = {"ready": workload.ready}
    if workload.template.is_suspended:
        since = times.to_seconds_text(workload.created_ms)
        status["conditions"] = [_job_condition("Suspended", "JobSuspended", "Job suspended", since)]
    else:
        status["startTime"] = times.to_seconds_text(workload.created_ms)
    if active:
        status["active"] = active
    if workload.succeeded:
        status["succeeded"] = workload.succeeded
    if workload.replicas and replicas.completions(workload) <= workload.succeeded and not active:
        ended = times.to_seconds_text(workload.ended_ms)
        status["completionTime"] = ended
        message = "Reached expected number of succeeded pods"
        status["conditions"] = [
            _job_condition(kind, "CompletionsReached", message, ended)
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
    return status


def _job_condition(kind: str, reason: str, message: str, since: str) -> Condition:
    return {**condition(kind, "True", reason, message, since), "lastProbeTime": since}


def _pod_status(cluster: str, workload: Workload) -> _PodStatus:
    address = addresses.of_pod(cluster, workload.ref.namespace, workload.ref.name)
    since = times.to_seconds_text(workload.created_ms)
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
        "containerStatuses": [
            {
                "name": name,
                "image": "",
                "imageID": "",
                "ready": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": since}},
            }
            for name in workload.template.containers
        ],
    }


def _replica_status(
    state: MemberState, workload: Workload
) -> _JobStatus | _DaemonSetStatus | _ReplicasStatus:
    count = workload.admitted + workload.pending
    ready = workload.ready
    refusal = quotas.refusal_of(state, workload)
    since = workload.created_ms
    failed = _condition("ReplicaFailure", "True", "FailedCreate", refusal, since)
    failures = [failed] if refusal else []
    generation = max(workload.generation, 1)
    counts: _ReplicasStatus = {
        "observedGeneration": generation,
        "replicas": count,
        "updatedReplicas": workload.updated,
        "readyReplicas": ready,
        "availableReplicas": ready,
    }
    if workload.ref.kind == "Job":
        return _job_status(workload)
    if workload.ref.kind == "DaemonSet":
        return {
            "currentNumberScheduled": count,
            "desiredNumberScheduled": count,
            "updatedNumberScheduled": workload.updated,
            "numberReady": ready,
            "numberAvailable": ready,
            "numberMisscheduled": 0,
            "observedGeneration": generation,
        }
    if workload.ref.kind in ("ReplicaSet", "ReplicationController"):
        del counts["updatedReplicas"]
        counts["fullyLabeledReplicas"] = count
        if failures:
            counts["conditions"] = failures
        return counts
    if workload.ref.kind == "StatefulSet":
        current = workload.former_pods[0].template if workload.former_pods else workload.template
        return {
            **counts,
            "currentReplicas": workload.outdated or count,
            "currentRevision": f"{workload.ref.name}-{current.digest}",
            "updateRevision": f"{workload.ref.name}-{workload.template.digest}",
            "collisionCount": 0,
        }
    if workload.ref.kind != "Deployment":
        return counts
    unavailable = (workload.replicas or 0) - ready if refusal else count - ready
    if unavailable > 0:
        counts["unavailableReplicas"] = unavailable
    counts["conditions"] = [_availability(workload), _progress(workload), *failures]
    return counts


def _availability(workload: Workload) -> Condition:
    replicas, strategy = workload.replicas or 0, workload.template.strategy
    unavailable = (
        strategy.unavailable(replicas) if strategy and not strategy.is_recreating and replicas else 0
    )
    status, reason, has = "False", "MinimumReplicasUnavailable", "does not have"
    if workload.ready >= replicas - unavailable:
        status, reason, has = "True", "MinimumReplicasAvailable", "has"
    message = f"Deployment {has} minimum availability."
    return _condition("Available", status, reason, message, workload.created_ms)


def _progress(workload: Workload) -> Condition:
    since = workload.progress_ms or workload.created_ms
    name = f'ReplicaSet "{replica_sets.name(workload.ref.name, workload.template.digest)}"'
    strategy, desired = workload.template.strategy, workload.replicas or 0
    if strategy is not None and strategy.is_paused:
        return _condition("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", since)
    if workload.updated >= desired and workload.ready >= desired and not workload.former_pods:
        message = f"{name} has successfully progressed."
        return _condition("Progressing", "True", "NewReplicaSetAvailable", message, since)
    if workload.is_stalled:
        message = f"{name} has timed out progressing."
        return _condition("Progressing", "False", "ProgressDeadlineExceeded", message, since)
    return _condition("Progressing", "True", "ReplicaSetUpdated", f"{name} is progressing.", since)


def _condition(kind: str, status: str, reason: str, message: str, since_ms: int) -> Condition:
    since = times.to_seconds_text(since_ms)
    return {**condition(kind, status, reason, message, since), "lastUpdateTime": since}
