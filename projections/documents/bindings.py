"""Rendering of bindings as ResourceBinding and ClusterResourceBinding (``work.karmada.io/v1alpha2``)."""

from collections.abc import Mapping
from typing import Final, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from engine.domain import marks
from engine.domain.bindings import SUCCESS, Claim, EvictionTask
from events import decisions, json_paths, keys, limits, records, shapes, status_values
from events.json_values import Json
from events.validation.known_kinds import WORK_GROUP
from projections.bindings import Binding, Status
from projections.documents import field_owners, kind_statuses
from projections.documents.objects import claim_marks, identity, instant, put

Dependents = Mapping[str, Binding]
"""The bindings that depend on a binding's template, by their keys."""

NO_DEPENDENTS: Final[Dependents] = {}
_DEPENDENCIES: Final = "resourcebinding.karmada.io/dependencies"
_FULLY_APPLIED: Final = "FullyApplied"
_FINALIZER: Final = "karmada.io/binding-controller"
_DISTRIBUTOR: Final = "karmada.io/binding-dependencies-distributor"
_CLUSTER_FINALIZER: Final = "karmada.io/cluster-resource-binding-controller"


class _Cluster(Struct, frozen=True, gc=False, omit_defaults=True):
    """A cluster with its replicas; 0 is left out, as in Karmada."""

    name: str
    replicas: int = 0


class _Numbers(Struct, frozen=True, gc=False, rename="camel"):
    available_replicas: int
    ready_replicas: int
    replicas: int
    updated_replicas: int


class _Generations(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    generation: int = 0
    observed_generation: int = 0
    resource_template_generation: int = 0


class _Member(Struct, frozen=True, gc=False, rename="camel"):
    applied: bool
    cluster_name: str
    health: str
    applied_message: str | UnsetType = UNSET
    status: _Numbers | Json | UnsetType = UNSET


def binding_document(
    binding: Binding,
    placement: bytes | None,
    applied: bytes | None,
    *,
    managed: bool = False,
    dependents: Dependents = NO_DEPENDENTS,
) -> Json:
    """Return the binding as an object; ``placement`` and ``applied`` are the JSON of the placements with its digests.

    ``managed`` adds ``managedFields``; some parts are then structs or raw bytes instead of plain values,
    which encode to the same JSON in less time, for long lists. ``dependents`` are the bindings that require this one.
    """
    metadata = _metadata(binding, applied, dependents)
    spec, status = _spec(binding, placement, dependents), _status(binding)
    if managed:
        metadata["managedFields"] = field_owners.all_of_engine(WORK_GROUP, spec, status)
    else:
        for part, name in ((spec, "clusters"), (status, "aggregatedStatus")):
            if name in part:
                part[name] = msgspec.to_builtins(part[name])
    return {**_head(binding), "metadata": metadata, "spec": spec, "status": status}


def binding_row(binding: Binding, applied: bytes | None, dependents: Dependents = NO_DEPENDENTS) -> Json:
    """Return only the metadata and conditions of the binding, enough for a row of a table."""
    status: Json = {"conditions": _conditions(binding)}
    return {**_head(binding), "metadata": _metadata(binding, applied, dependents), "status": status}


def _head(binding: Binding) -> Json:
    kind = "ResourceBinding" if binding.template.namespace else "ClusterResourceBinding"
    return {"apiVersion": WORK_GROUP, "kind": kind}


def _metadata(binding: Binding, applied: bytes | None, dependents: Dependents) -> Json:
    template = binding.template
    labels, annotations = claim_marks(binding)
    labels |= marks.of_binding(template, binding.uid).labels
    labels |= {marks.depended_by(key): dependent.uid for key, dependent in dependents.items()}
    if applied is not None:
        annotations[marks.APPLIED_PLACEMENT] = applied.decode()
    finalizers = [_FINALIZER if template.namespace else _CLUSTER_FINALIZER]
    if binding.dependencies or (binding.claim is not None and binding.claim.propagate_deps):
        annotations[_DEPENDENCIES] = msgspec.json.encode(binding.dependencies or None).decode()
        finalizers.append(_DISTRIBUTOR)
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
        "labels": labels,
        **({"annotations": annotations} if annotations else {}),
        "ownerReferences": [owner],
        "finalizers": finalizers,
    }


def _spec(binding: Binding, placement: bytes | None, dependents: Dependents) -> Json:
    reference = _plain(binding.template) | {"uid": binding.template_uid}
    if binding.template_version:
        reference["resourceVersion"] = str(binding.template_version)
    spec: Json = {"resource": reference}
    if binding.replicas:
        spec["replicas"] = binding.replicas
    if binding.requests is not None:
        spec["replicaRequirements"] = {
            "resourceRequest": binding.requests,
            **({"namespace": binding.template.namespace} if binding.template.namespace else {}),
        }
    if placement is not None:
        spec["placement"] = msgspec.Raw(placement)
    if binding.clusters:
        has_replicas = binding.replicas is not None
        spec["clusters"] = [
            _Cluster(name, replicas if has_replicas else 0) for name, replicas in binding.clusters
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
    return spec | _claimed(binding)


def _claimed(binding: Binding) -> Json:
    """Fields of the spec that come from the policy, beside the placement; else from the bindings that need it."""
    claim = binding.last_claim
    if claim is None:
        resolution, preserves = binding.conflict_resolution, binding.preserves
        return (
            {"conflictResolution": resolution, "preserveResourcesOnDeletion": preserves}
            if binding.required
            else {}
        )
    spec: Json = {"conflictResolution": claim.conflict_resolution, "schedulerName": claim.scheduler_name}
    if claim.propagate_deps:
        spec["propagateDeps"] = True
    if claim.preserve_on_deletion is not None:
        spec["preserveResourcesOnDeletion"] = claim.preserve_on_deletion
    if failover := _failover(claim):
        spec["failover"] = failover
    return spec


def _priority(rank: decisions.PriorityResolved) -> Json:
    rendered: Json = {"priority": rank.priority}
    return rendered | {"preemptionPolicy": rank.preemption_policy} if rank.preemption_policy else rendered


def _snapshot(need: decisions.RequiredBy, dependent: Binding | None) -> Json:
    """An entry of ``requiredBy``: the dependent binding and its clusters, with their replicas."""
    replicas = {} if dependent is None or dependent.replicas is None else dict(dependent.clusters)
    clusters = [
        {"name": cluster, **({"replicas": replicas[cluster]} if replicas.get(cluster) else {})}
        for cluster in need.clusters
    ]
    return {"namespace": need.namespace, "name": need.name, "clusters": clusters}


def _plain(struct: Struct) -> Json:
    return cast("Json", msgspec.to_builtins(struct))


def _task(task: EvictionTask) -> Json:
    message = _message(task)
    return {
        "fromCluster": task.cluster,
        **({"replicas": task.replicas} if task.replicas else {}),
        "reason": task.reason,
        "producer": task.producer,
        **({"purgeMode": task.purge_mode} if task.purge_mode else {}),
        **({} if task.grace_period_seconds is None else {"gracePeriodSeconds": task.grace_period_seconds}),
        **({} if task.suppress_deletion is None else {"suppressDeletion": task.suppress_deletion}),
        **({"message": message} if message else {}),
        **({"preservedLabelState": task.labels} if task.labels else {}),
        **({"clustersBeforeFailover": list(task.clusters_before)} if task.clusters_before else {}),
        **({} if task.created_ms is None else {"creationTimestamp": instant(task.created_ms)}),
    }


def _message(task: EvictionTask) -> str:
    """Return a message with the preempting binding and the state that is not preserved."""
    preemption = (f"preempted by {task.by}",) if task.by else ()
    missing = (
        f"{label} is not preserved: {task.not_preserved[label]}" for label in sorted(task.not_preserved)
    )
    return "; ".join((*preemption, *missing))


def _failover(claim: Claim) -> Json:
    rendered: Json = {}
    failover = claim.failover
    if failover is not None:
        application: Json = {
            "decisionConditions": {"tolerationSeconds": failover.toleration_seconds},
            "purgeMode": failover.purge_mode,
            **_preservation(failover.preserved),
        }
        if failover.grace_period_seconds is not None:
            application["gracePeriodSeconds"] = failover.grace_period_seconds
        rendered["application"] = application
    if claim.preserved:
        rendered["cluster"] = {"purgeMode": claim.purge_mode, **_preservation(claim.preserved)}
    return rendered


def _preservation(rules: tuple[shapes.StateRule, ...]) -> Json:
    if not rules:
        return {}
    rendered = [{"aliasLabelName": rule.alias, "jsonPath": rule.path} for rule in rules]
    return {"statePreservation": {"rules": rendered}}


def _suspension(binding: Binding) -> Json:
    """The parts of a binding that its policy and clients suspend."""
    claim, suspension = binding.last_claim, binding.suspension
    rendered: Json = {"scheduling": True} if suspension.scheduling else {}
    if suspension.dispatching or (claim is not None and claim.suspended):
        rendered["dispatching"] = True
        return rendered
    if claim is not None and claim.resumed:
        rendered["dispatching"] = False
    if claim is not None and claim.suspended_on:
        rendered["dispatchingOnClusters"] = {"clusterNames": list(claim.suspended_on)}
    return rendered


def _status(binding: Binding) -> Json:
    status: Json = {"conditions": _conditions(binding)}
    if binding.scheduled_generation:
        status["schedulerObservedGeneration"] = binding.scheduled_generation
    if binding.scheduled_ms:
        status["lastScheduledTime"] = instant(binding.scheduled_ms)
    if binding.affinity:
        status["schedulerObservingAffinityName"] = binding.affinity
    if binding.status is not None:
        status["aggregatedStatus"] = _aggregated(binding.status, binding)
    return status


def _conditions(binding: Binding) -> list[Json]:
    conditions: list[Json] = []
    if binding.condition:
        conditions.append(_scheduled(binding))
    if binding.status is not None:
        conditions.append(_fully_applied(binding.status))
    return conditions


def _scheduled(binding: Binding) -> Json:
    is_success = binding.condition == SUCCESS
    return {
        "type": "Scheduled",
        "status": "True" if is_success else "False",
        "reason": binding.condition,
        "message": "Binding has been scheduled successfully." if is_success else binding.message,
        "lastTransitionTime": instant(binding.condition_since_ms),
    }


def _fully_applied(status: Status) -> Json:
    done = status.fully_applied
    return {
        "type": _FULLY_APPLIED,
        "status": "True" if done else "False",
        "reason": "FullyAppliedSuccess" if done else "FullyAppliedFailed",
        "message": "All works have been successfully applied"
        if done
        else "Failed to apply all works, see status.aggregatedStatus for details",
        "lastTransitionTime": instant(status.since_ms),
    }


def _aggregated(status: Status, binding: Binding) -> list[_Member]:
    has_replicas = binding.replicas is not None
    return [
        _Member(
            member.applied,
            member.cluster,
            member.health,
            applied_message=(member.message if member.applied else fault_of(member)) or UNSET,
            status=member_status(member, binding.template, has_replicas=has_replicas)
            if _has_reported(member)
            else UNSET,
        )
        for member in status.members
    ]


def fault_of(member: decisions.MemberStatus) -> str:
    """Return why a Work, which has one manifest, is not applied in a member, in the reference's words."""
    return f"Failed to apply all manifests (0/1): {member.message}" if member.message else ""


def _has_reported(member: decisions.MemberStatus) -> bool:
    """Whether the cluster has ever applied the object; after a fault the former version keeps running."""
    return member.applied or bool(member.generation or member.replicas or member.values)


def member_status(
    member: decisions.MemberStatus, ref: shapes.WorkloadRef, *, has_replicas: bool
) -> _Numbers | Json | UnsetType:
    """The reported part of the status: the whole one, or replica counts and the values that the work requested."""
    if member.status and (whole := _whole(member.status)) is not None:
        return whole
    numbers = _Numbers(member.available, member.ready, member.replicas, member.updated)
    status = _plain(_Generations(member.generation, member.observed_generation, member.template_generation))
    if not member.values:
        return (status | _plain(numbers) if status else numbers) if has_replicas else UNSET
    kind = ref.api_version, ref.kind
    counts = status_values.COUNTS.get(kind, ())
    for path, text in member.values.items():
        put(status, json_paths.names(path), int(text) if path in counts and text.isdecimal() else text)
    kind_status = kind_statuses.of_member(ref, member.values)
    if kind_status is not None:
        return status | kind_status
    return status | (_plain(numbers) if has_replicas and kind != kind_statuses.JOB else {})


def _whole(text: str) -> Json | None:
    """Return a whole status; None for one that another producer reported and that is no JSON object."""
    if records.is_deeper(text.encode(), limits.RECORD_DEPTH_MAX):
        return None
    try:
        return msgspec.json.decode(text, type=Json)
    except (msgspec.MsgspecError, ValueError):
        return None
