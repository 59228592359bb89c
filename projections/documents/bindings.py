"""Rendering of bindings as ResourceBinding and ClusterResourceBinding (``work.karmada.io/v1alpha2``)."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from engine.domain import marks
from engine.domain.bindings import SUCCESS, Claim
from engine.domain.workload_groups import GroupLabel
from events import decisions, keys, shapes
from events.kube_fields import Condition, ObjectMeta, condition, controlled_by
from events.kube_objects import KubeObject
from events.validation.known_kinds import WORK_GROUP
from projections.bindings import Binding, Status
from projections.documents import binding_fields, field_owners, member_statuses
from projections.documents.objects import (
    claim_marks,
    identity,
    instant,
    workload_reference,
)

Dependents = Mapping[str, Binding]
"""The bindings that depend on a binding's template, by their keys."""

NO_DEPENDENTS: Final[Dependents] = {}
_DEPENDENCIES: Final = "resourcebinding.karmada.io/dependencies"
_FULLY_APPLIED: Final = "FullyApplied"
_FINALIZER: Final = "karmada.io/binding-controller"
_DISTRIBUTOR: Final = "karmada.io/binding-dependencies-distributor"
_CLUSTER_FINALIZER: Final = "karmada.io/cluster-resource-binding-controller"


def binding_document(
    binding: Binding,
    placement: bytes | None,
    applied: bytes | None,
    *,
    managed: bool = False,
    dependents: Dependents = NO_DEPENDENTS,
) -> KubeObject:
    """Return the binding as an object.

    ``placement`` and ``applied`` are the JSON of the placements with the digests ``binding.placement`` and
    ``binding.applied``. ``managed`` adds ``managedFields`` and leaves some parts as structs or raw bytes, which encode
    to the same JSON as plain values in less time. ``dependents`` are the bindings that require this one.
    """
    metadata = _metadata(binding, applied, dependents)
    spec, status = _spec(binding, placement, dependents), _status(binding)
    if managed:
        metadata["managedFields"] = field_owners.engine_managed_fields(WORK_GROUP, spec, status)
    else:
        if "clusters" in spec:
            spec["clusters"] = msgspec.to_builtins(spec["clusters"])
        if "aggregatedStatus" in status:
            status["aggregatedStatus"] = msgspec.to_builtins(status["aggregatedStatus"])
    return KubeObject(
        {
            "apiVersion": WORK_GROUP,
            "kind": _kind(binding),
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }
    )


def binding_row(
    binding: Binding, applied: bytes | None, dependents: Dependents = NO_DEPENDENTS
) -> KubeObject:
    """Return only the metadata and conditions of the binding, enough for a row of a table."""
    metadata, status = _metadata(binding, applied, dependents), {"conditions": _conditions(binding)}
    return KubeObject(
        {"apiVersion": WORK_GROUP, "kind": _kind(binding), "metadata": metadata, "status": status}
    )


def _kind(binding: Binding) -> str:
    return "ResourceBinding" if binding.template.namespace else "ClusterResourceBinding"


def _metadata(binding: Binding, applied: bytes | None, dependents: Dependents) -> ObjectMeta:
    template = binding.template
    labels, annotations = claim_marks(binding.claim)
    labels |= marks.of_binding(template, binding.uid).labels
    labels |= {marks.depended_by(key): dependent.uid for key, dependent in dependents.items()}
    if applied is not None:
        annotations[marks.APPLIED_PLACEMENT] = applied.decode()
    finalizers = [_FINALIZER if template.namespace else _CLUSTER_FINALIZER]
    if binding.dependencies or (binding.claim is not None and binding.claim.propagate_deps):
        annotations[_DEPENDENCIES] = msgspec.json.encode(binding.dependencies or None).decode()
        finalizers.append(_DISTRIBUTOR)
    owner = controlled_by(template.api_version, template.kind, template.name, binding.template_uid)
    metadata: ObjectMeta = {"name": keys.binding_name(template.kind, template.name)}
    if template.namespace:
        metadata["namespace"] = template.namespace
    metadata |= identity(binding.uid, binding.generation, binding.created_ms, binding.number)
    metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    metadata["ownerReferences"] = [owner]
    metadata["finalizers"] = finalizers
    return metadata


def _spec(binding: Binding, placement: bytes | None, dependents: Dependents) -> binding_fields.BindingSpec:
    reference = workload_reference(binding.template)
    reference["uid"] = binding.template_uid
    if binding.template_version:
        reference["resourceVersion"] = str(binding.template_version)
    spec: binding_fields.BindingSpec = {"resource": reference}
    if binding.replicas:
        spec["replicas"] = binding.replicas
    if binding.requests is not None:
        spec["replicaRequirements"] = _requirements(binding, binding.requests)
    if placement is not None:
        spec["placement"] = msgspec.Raw(placement)
    if binding.clusters:
        has_replicas = binding.replicas is not None
        spec["clusters"] = [
            binding_fields.Target(name, replicas if has_replicas else 0)
            for name, replicas in binding.clusters
        ]
    if binding.triggered_ms:
        spec["rescheduleTriggeredAt"] = instant(binding.triggered_ms)
    if binding.tasks:
        spec["gracefulEvictionTasks"] = [_task(task) for task in binding.tasks]
    if binding.required:
        needs = sorted(binding.required.items())
        spec["requiredBy"] = [_snapshot(need, dependents.get(key)) for key, need in needs]
    if binding.rank is not None:
        spec["schedulePriority"] = _priority(binding.rank)
    if suspension := _suspension(binding):
        spec["suspension"] = suspension
    if binding.groups:
        spec["workloadAffinityGroups"] = _groups(binding.groups)
    _set_claimed(spec, binding)
    return spec


def _groups(groups: Sequence[GroupLabel]) -> binding_fields.WorkloadGroups:
    rendered: binding_fields.WorkloadGroups = {}
    for label, value, is_apart in groups:
        rendered["antiAffinityGroup" if is_apart else "affinityGroup"] = f"{label}={value}"
    return rendered


def _requirements(binding: Binding, requests: dict[str, str]) -> binding_fields.Requirements:
    requirements: binding_fields.Requirements = {}
    if binding.node_claim:
        requirements["nodeClaim"] = msgspec.Raw(binding.node_claim)
    if requests:
        requirements["resourceRequest"] = requests
    if namespace := binding.template.namespace:
        requirements["namespace"] = namespace
    return requirements


def _set_claimed(spec: binding_fields.BindingSpec, binding: Binding) -> None:
    """Set the fields, except the placement, that the policy or, without a policy, dependent bindings determine."""
    claim = binding.last_claim
    if claim is None:
        if binding.required:
            spec["conflictResolution"] = binding.conflict_resolution
            spec["preserveResourcesOnDeletion"] = binding.preserves
        return
    spec["conflictResolution"] = claim.conflict_resolution
    spec["schedulerName"] = claim.scheduler_name
    if claim.propagate_deps:
        spec["propagateDeps"] = True
    if claim.preserve_on_deletion is not None:
        spec["preserveResourcesOnDeletion"] = claim.preserve_on_deletion
    if failover := _failover(claim):
        spec["failover"] = failover


def _priority(rank: decisions.PriorityResolved) -> binding_fields.Priority:
    rendered: binding_fields.Priority = {"priority": rank.priority}
    if rank.preemption_policy:
        rendered["preemptionPolicy"] = rank.preemption_policy
    return rendered


def _snapshot(need: decisions.RequiredBy, dependent: Binding | None) -> binding_fields.Snapshot:
    """Return an entry of ``requiredBy``: the dependent binding and its clusters, with the replicas in each."""
    replicas = {} if dependent is None or dependent.replicas is None else dict(dependent.clusters)
    clusters: list[binding_fields.TargetCluster] = [
        {"name": cluster, "replicas": replicas[cluster]} if replicas.get(cluster) else {"name": cluster}
        for cluster in need.clusters
    ]
    return {"namespace": need.namespace, "name": need.name, "clusters": clusters}


def _task(task: decisions.EvictionStarted) -> binding_fields.Task:
    rendered: binding_fields.Task = {"fromCluster": task.cluster}
    if task.replicas:
        rendered["replicas"] = task.replicas
    rendered["reason"] = task.reason
    rendered["producer"] = task.producer
    if task.purge_mode:
        rendered["purgeMode"] = task.purge_mode
    if task.grace_period_seconds is not None:
        rendered["gracePeriodSeconds"] = task.grace_period_seconds
    if task.suppress_deletion is not None:
        rendered["suppressDeletion"] = task.suppress_deletion
    if message := _message(task):
        rendered["message"] = message
    if task.labels:
        rendered["preservedLabelState"] = task.labels
    if task.clusters_before:
        rendered["clustersBeforeFailover"] = list(task.clusters_before)
    rendered["creationTimestamp"] = instant(task.created_ms)
    return rendered


def _message(task: decisions.EvictionStarted) -> str:
    """Return the message of an eviction task: names the preempting binding, and state that is not preserved."""
    preemption = (f"preempted by {task.by}",) if task.by else ()
    missing = (
        f"{label} is not preserved: {task.not_preserved[label]}" for label in sorted(task.not_preserved)
    )
    return "; ".join((*preemption, *missing))


def _failover(claim: Claim) -> binding_fields.Failover:
    rendered: binding_fields.Failover = {}
    failover = claim.failover
    if failover is not None:
        application: binding_fields.ApplicationFailover = {
            "decisionConditions": {"tolerationSeconds": failover.toleration_seconds},
            "purgeMode": failover.purge_mode,
        }
        if failover.preserved:
            application["statePreservation"] = _preservation(failover.preserved)
        if failover.grace_period_seconds is not None:
            application["gracePeriodSeconds"] = failover.grace_period_seconds
        rendered["application"] = application
    if claim.purge_mode:
        rendered["cluster"] = {"purgeMode": claim.purge_mode}
        if claim.preserved:
            rendered["cluster"]["statePreservation"] = _preservation(claim.preserved)
    return rendered


def _preservation(rules: tuple[shapes.StateRule, ...]) -> binding_fields.Preservation:
    return {"rules": [{"aliasLabelName": rule.alias, "jsonPath": rule.path} for rule in rules]}


def _suspension(binding: Binding) -> binding_fields.Suspension:
    """Return the field ``suspension``, which combines the suspensions by the policy and by clients."""
    claim, suspension = binding.last_claim, binding.suspension
    rendered: binding_fields.Suspension = {"scheduling": True} if suspension.scheduling else {}
    if suspension.dispatching or (claim is not None and claim.suspended):
        rendered["dispatching"] = True
        return rendered
    if claim is not None and claim.resumed:
        rendered["dispatching"] = False
    if claim is not None and claim.suspended_on:
        rendered["dispatchingOnClusters"] = {"clusterNames": list(claim.suspended_on)}
    return rendered


def _status(binding: Binding) -> binding_fields.BindingStatus:
    status: binding_fields.BindingStatus = {"conditions": _conditions(binding)}
    if binding.scheduled_generation:
        status["schedulerObservedGeneration"] = binding.scheduled_generation
    if binding.scheduled_ms:
        status["lastScheduledTime"] = instant(binding.scheduled_ms)
    if binding.affinity:
        status["schedulerObservingAffinityName"] = binding.affinity
    if binding.status is not None:
        status["aggregatedStatus"] = member_statuses.aggregated(binding.status, binding)
    return status


def _conditions(binding: Binding) -> list[Condition]:
    conditions: list[Condition] = []
    if binding.condition:
        conditions.append(_scheduled(binding))
    if binding.status is not None:
        conditions.append(_fully_applied(binding.status))
    return conditions


def _scheduled(binding: Binding) -> Condition:
    is_success = binding.condition == SUCCESS
    message = "Binding has been scheduled successfully." if is_success else binding.message
    since = instant(binding.condition_since_ms)
    return condition("Scheduled", str(is_success), binding.condition, message, since)


def _fully_applied(status: Status) -> Condition:
    if status.fully_applied:
        reason, message = "FullyAppliedSuccess", "All works have been successfully applied"
    else:
        reason = "FullyAppliedFailed"
        message = "Failed to apply all works, see status.aggregatedStatus for details"
    return condition(_FULLY_APPLIED, str(status.fully_applied), reason, message, instant(status.since_ms))
