"""Bindings as ResourceBinding and ClusterResourceBinding objects (``work.karmada.io/v1alpha2``)."""

from typing import Final, cast

import msgspec

from events import decisions, keys, shapes
from projections import owners
from projections.bindings import SUCCESS, Binding, Scheduled, Status, Task
from projections.documents import Json, claim_marks, identity, instant

_API_VERSION: Final = "work.karmada.io/v1alpha2"
_APPLIED: Final = "policy.karmada.io/applied-placement"
_FULLY_APPLIED: Final = "FullyApplied"


def binding_document(
    binding: Binding, placement: bytes | None, applied: bytes | None, *, managed: bool = False
) -> Json:
    """The binding as an object; ``placement`` and ``applied`` are those that its digests name.

    ``managed`` shows who owns which fields.
    """
    template = binding.template
    metadata, spec, status = _metadata(binding, applied), _spec(binding, placement), _status(binding)
    if managed:
        metadata["managedFields"] = owners.all_of_engine(_API_VERSION, spec, status)
    return {
        "apiVersion": _API_VERSION,
        "kind": "ResourceBinding" if template.namespace else "ClusterResourceBinding",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _metadata(binding: Binding, applied: bytes | None) -> Json:
    template = binding.template
    labels, annotations = claim_marks(binding)
    if applied is not None:
        annotations[_APPLIED] = applied.decode()
    owner = {
        "apiVersion": template.api_version,
        "kind": template.kind,
        "name": template.name,
        "uid": binding.template_uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "name": keys.binding_name(template.kind, template.name),
        **({"namespace": template.namespace} if template.namespace else {}),
        **identity(binding.uid, binding.generation, binding.created_ms, binding.number),
        **({"labels": labels} if labels else {}),
        **({"annotations": annotations} if annotations else {}),
        "ownerReferences": [owner],
        "finalizers": ["karmada.io/binding-controller"],
    }


def _spec(binding: Binding, placement: bytes | None) -> Json:
    reference = _plain(binding.template) | {"uid": binding.template_uid}
    spec: Json = {"resource": reference}
    if binding.replicas is not None:
        spec["replicas"] = binding.replicas
    if binding.requests is not None:
        spec["replicaRequirements"] = {"resourceRequest": binding.requests}
    if placement is not None:
        spec["placement"] = msgspec.Raw(placement)
    spec["clusters"] = [_target(target, binding) for target in binding.clusters]
    if binding.triggered_ms:
        spec["rescheduleTriggeredAt"] = instant(binding.triggered_ms)
    if binding.tasks:
        spec["gracefulEvictionTasks"] = [_task(task) for task in binding.tasks]
    claim = binding.claim
    if claim is None:
        return spec
    spec["conflictResolution"] = claim.conflict_resolution
    if claim.preserve_on_deletion:
        spec["preserveResourcesOnDeletion"] = True
    if claim.failover is not None:
        spec["failover"] = _failover(claim.failover)
    if claim.suspended or claim.suspended_on:
        spec["suspension"] = _suspension(suspended=claim.suspended, on=claim.suspended_on)
    return spec


def _plain(shape: shapes.Shape) -> Json:
    return cast("Json", msgspec.to_builtins(shape))


def _target(target: shapes.TargetCluster, binding: Binding) -> Json:
    """A cluster with its replicas; kinds without replicas show the name alone."""
    shown: Json = {"name": target.name}
    return shown if binding.replicas is None else shown | {"replicas": target.replicas}


def _task(task: Task) -> Json:
    return {
        "fromCluster": task.cluster,
        **({"replicas": task.replicas} if task.replicas else {}),
        "reason": task.reason,
        "producer": task.producer,
        **({"purgeMode": task.purge_mode} if task.purge_mode else {}),
        **({} if task.grace_period_seconds is None else {"gracePeriodSeconds": task.grace_period_seconds}),
        **({} if task.suppress_deletion is None else {"suppressDeletion": task.suppress_deletion}),
        "creationTimestamp": instant(task.created_ms),
    }


def _failover(failover: decisions.ApplicationFailover) -> Json:
    application: Json = {
        "decisionConditions": {"tolerationSeconds": failover.toleration_seconds},
        "purgeMode": failover.purge_mode,
    }
    if failover.grace_period_seconds is not None:
        application["gracePeriodSeconds"] = failover.grace_period_seconds
    return {"application": application}


def _suspension(*, suspended: bool, on: tuple[str, ...]) -> Json:
    if suspended:
        return {"dispatching": True}
    return {"dispatchingOnClusters": {"clusterNames": list(on)}}


def _status(binding: Binding) -> Json:
    conditions: list[Json] = []
    status: Json = {"conditions": conditions}
    if binding.scheduled is not None:
        conditions.append(_scheduled(binding.scheduled))
        status["schedulerObservedGeneration"] = binding.scheduled.observed
    if binding.scheduled_ms:
        status["lastScheduledTime"] = instant(binding.scheduled_ms)
    if binding.affinity:
        status["schedulerObservedAffinityName"] = binding.affinity
    if binding.status is not None:
        conditions.append(_fully_applied(binding.status))
        status["aggregatedStatus"] = _aggregated(binding.status, binding)
    return status


def _scheduled(scheduled: Scheduled) -> Json:
    return {
        "type": "Scheduled",
        "status": "True" if scheduled.reason == SUCCESS else "False",
        "reason": scheduled.reason,
        "message": scheduled.message,
        "lastTransitionTime": instant(scheduled.since_ms),
    }


def _fully_applied(status: Status) -> Json:
    done = status.fully_applied
    return {
        "type": _FULLY_APPLIED,
        "status": "True" if done else "False",
        "reason": "FullyAppliedSuccess" if done else "FullyAppliedFailed",
        "message": "All works have been applied."
        if done
        else "Some works are not applied; see aggregatedStatus.",
        "lastTransitionTime": instant(status.since_ms),
    }


def _aggregated(status: Status, binding: Binding) -> list[Json]:
    shown: list[Json] = []
    for member in status.members:
        numbers: Json = {
            "replicas": member.replicas,
            "updatedReplicas": member.updated,
            "readyReplicas": member.ready,
            "availableReplicas": member.available,
        }
        item: Json = {"clusterName": member.cluster, "applied": member.applied, "health": member.health}
        if member.message:
            item["appliedMessage"] = member.message
        shown.append(item if binding.replicas is None else item | {"status": numbers})
    return shown
