"""Objects that a member's own API shows: workloads, pods, namespaces.

They are computed on request from the member's replica counts and the manifests of the works.
"""

from collections.abc import Iterator
from typing import Final

from engine.domain import marks, replica_fields
from engine.domain.namespaces import OF_EVERY_CLUSTER, PropagatedNamespace, shown
from engine.kubeapi.admission import built_in_shapes
from engine.kubeapi.values import job_selectors
from engine.simulation import (
    addresses,
    listed_statuses,
    lists,
    nodes,
    pod_priorities,
    replica_sets,
    statuses,
    uids,
    unmanaged,
)
from engine.simulation.specs import uid
from engine.simulation.state import MemberState, Unmanaged, Workload
from engine.works import templates
from events import times, vocabulary
from events.json_values import Json, as_object, object_at, objects_at
from events.kube_fields import OwnerReference, condition, controlled_by
from events.kube_objects import KubeObject

_NAME_LABEL: Final = "kubernetes.io/metadata.name"


def workload_object(
    state: MemberState,
    workload: Workload,
    manifest: KubeObject,
    mark_values: marks.MarkValues | None = None,
) -> KubeObject:
    """Return a workload as the member has it: the work's manifest with the member's replicas and status.

    ``mark_values`` has the labels and annotations that Karmada adds; None if the object gets none of them.
    """
    ref = workload.ref
    metadata: Json = {
        "name": ref.name,
        **({"namespace": ref.namespace} if ref.namespace else {}),
        "uid": uids.of_object(state.spec.name, workload),
        "generation": max(workload.generation, 1),
        "creationTimestamp": times.to_seconds_text(workload.created_ms),
    }
    for name in ("labels", "annotations"):
        if texts := as_object(manifest.metadata.get(name)):
            metadata[name] = texts
    if mark_values is not None:
        metadata = marks.propagated(KubeObject({"metadata": metadata}), mark_values).metadata
    for name, texts in (("labels", workload.kept.labels), ("annotations", workload.kept.annotations)):
        if texts:
            metadata[name] = {**dict(texts), **object_at(metadata, name)}
    result: Json = {
        **manifest.document,
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "metadata": metadata,
    }
    result.pop("status", None)
    if workload.replicas is not None and ref.kind not in templates.COUNTED_BY_MEMBERS:
        declared = replica_fields.declared_path(workload.source.reading)
        result = replica_fields.with_counts(result, declared, workload.replicas, workload.completions)
    if status := statuses.status(state, workload):
        result["status"] = status
    return KubeObject(result)


def unmanaged_object(state: MemberState, key: str, item: Unmanaged) -> KubeObject:
    """Return an object that clients of the member wrote, with its status and the metadata that an API server sets."""
    value, ref = KubeObject.from_json(item.manifest), item.ref
    workload = unmanaged.running(state, key)
    if workload is None:
        workload = unmanaged.workload_of(key, item)
        workload.template = templates.read(item.manifest)
    metadata: Json = {
        **value.metadata,
        "uid": uids.of_object(state.spec.name, workload),
        "generation": item.generation,
        "creationTimestamp": times.to_seconds_text(item.created_ms),
    }
    if ref.kind == "Namespace":
        labels = {_NAME_LABEL: ref.name, **object_at(metadata, "labels")}
        metadata["labels"] = labels
    if item.revisions and ref.kind == "Deployment":
        revision = {replica_sets.REVISION: str(item.revisions[-1].number)}
        metadata["annotations"] = {**object_at(metadata, "annotations"), **revision}
    status = {**value.object_at("status"), **statuses.status(state, workload)}
    if "observedGeneration" in status and workload.replicas is not None:
        status["observedGeneration"] = item.generation
    shown: Json = {"status": status} if status else {}
    return value.with_fields({"metadata": metadata, **shown})


def pods(state: MemberState, workload: Workload, manifest: KubeObject) -> Iterator[KubeObject]:
    """Yield the pods of a workload, oldest first."""
    spec = manifest.object_at("spec", "template", "spec")
    containers = objects_at(spec, "containers")
    node_of_pods = nodes.NodeChoice(state, workload)
    rank = pod_priorities.rank_of(state, workload) if pod_priorities.is_used(state) else None
    priority: Json = {} if rank is None else {"priority": rank.value}
    annotations = manifest.object_at("spec", "template", "metadata", "annotations")
    unschedulable = nodes.unschedulable(state, workload) if workload.pending else ""
    quality: Json = {"qosClass": built_in_shapes.quality_of_service(spec)}
    for pod in lists.pods_of(state.spec.name, workload):
        created = times.to_seconds_text(pod.created_ms)
        since = times.to_seconds_text(pod.ready_ms) if pod.ready_ms and pod.ready else created
        metadata: Json = {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": uids.of_pod(state.spec.name, pod.name, pod.created_ms),
            "creationTimestamp": created,
            "labels": {**pod.labels, **_labels_of_controller(state, workload, manifest, pod)},
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [owner_of_pods(state, workload)],
        }
        node = nodes.name_of(state, node_of_pods.of(pod)) if pod.ready else ""
        placement: Json = {"nodeName": node} if node else {}
        yield KubeObject(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": {**spec, **priority, **placement},
                "status": {**_pod_status(pod, containers, node, since, unschedulable), **quality},
            }
        )


def _labels_of_controller(
    state: MemberState, workload: Workload, manifest: KubeObject, pod: listed_statuses.Pod
) -> Json:
    """Return the labels that the controller of a workload adds to its pods."""
    match workload.ref.kind:
        case "Deployment":
            return {templates.HASH_LABEL: workload.template.digest}
        case "StatefulSet":
            index = pod.name.rpartition("-")[2]
            return {"statefulset.kubernetes.io/pod-name": pod.name, "apps.kubernetes.io/pod-index": index}
        case "Job" if job_selectors.is_derived(manifest):
            return job_selectors.labels(uids.of_object(state.spec.name, workload), workload.ref.name)
        case _:
            return {}


def namespaces(
    state: MemberState, created_ms: int, written: list[KubeObject], propagated: list[PropagatedNamespace]
) -> list[KubeObject]:
    """Return the namespaces of a member, sorted by name.

    They are the built-in ones, those of its workloads, the ``propagated`` ones, and those that its clients have
    ``written``. A propagated namespace keeps the labels and annotations that clients added. A namespace that a client
    had created before its propagation is returned as it was written.
    """
    used = {workload.ref.namespace for workload in state.workloads.values() if workload.ref.namespace}
    names = (*OF_EVERY_CLUSTER, *used)
    by_name = {
        name: _namespace(name, created_ms, {}, uid(state.spec.name, "namespace", name)) for name in names
    }
    edits = {value.name: value for value in written if marks.WORK_NAME in value.annotations}
    nothing = KubeObject({})
    for item in propagated:
        name = item.manifest.name
        edited = edits.get(name, nothing)
        merged: Json = {
            "labels": {**edited.labels, **item.manifest.labels},
            "annotations": {**edited.annotations, **item.manifest.annotations},
            "deletionTimestamp": edited.metadata.get("deletionTimestamp"),
        }
        own_uid = uid(state.spec.name, "namespace", name, str(item.created_ms))
        by_name[name] = _namespace(name, item.created_ms, merged, own_uid)
    for value in written:
        if value.name not in edits:
            by_name[value.name] = value
    return [by_name[name] for name in sorted(by_name)]


def _namespace(name: str, created_ms: int, texts: Json, uid: str) -> KubeObject:
    metadata: Json = {
        "name": name,
        "uid": uid,
        "creationTimestamp": times.to_seconds_text(created_ms),
        **{field: item for field, item in texts.items() if item},
    }
    metadata["labels"] = {_NAME_LABEL: name, **object_at(metadata, "labels")}
    return shown(KubeObject({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))


def _pod_status(
    pod: listed_statuses.Pod, containers: list[Json], node: str, since: str, unschedulable: str
) -> Json:
    """Return the status of a pod that has these containers and last changed at ``since``.

    ``node`` is the name of a ready pod's node. ``unschedulable`` is the scheduler's message for those pods of the
    workload that wait for a node, empty if none waits; it is not used for other pods.
    """
    if unschedulable and pod.ready_ms is None and not pod.waiting and pod.phase != lists.SUCCEEDED:
        waiting = condition("PodScheduled", "False", "Unschedulable", unschedulable, since)
        return {"phase": pod.phase, "conditions": [waiting]}
    reason: Json = {"reason": pod.waiting} if pod.waiting else {}
    state: Json = {"running": {"startedAt": since}} if pod.ready else {"waiting": reason}
    if pod.phase == lists.SUCCEEDED:
        state = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": since}}
    container_statuses = [
        {
            "name": str(container.get("name", "")),
            "image": str(container.get("image", "")),
            "imageID": "",
            "ready": pod.ready,
            "restartCount": pod.restarts,
            "started": pod.ready,
            "state": state,
        }
        for container in containers
    ]
    status = "True" if pod.ready else "False"
    conditions = [
        {"type": kind, "status": status, "lastTransitionTime": since} for kind in ("Ready", "ContainersReady")
    ]
    assigned: Json = {}
    if pod.ready:
        # Pods are assigned to their nodes as soon as they are created.
        created = times.to_seconds_text(pod.created_ms)
        conditions += [
            {"type": kind, "status": "True", "lastTransitionTime": created}
            for kind in ("Initialized", "PodScheduled")
        ]
        address = addresses.of_pod(pod.cluster, pod.namespace, pod.name)
        host = addresses.of_node(pod.cluster, node)
        assigned = {
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": host,
            "hostIPs": [{"ip": host}],
            "startTime": created,
        }
    return {"phase": pod.phase, **assigned, "conditions": conditions, "containerStatuses": container_statuses}


def owner_of_pods(state: MemberState, workload: Workload) -> OwnerReference:
    """Return the owner reference of a pod: its workload, or the ReplicaSet of a Deployment."""
    if workload.ref.kind != "Deployment":
        return owned_by(state, workload)
    digest = workload.template.digest
    name = replica_sets.name(workload.ref.name, digest)
    return controlled_by(
        *vocabulary.REPLICA_SET, name, uids.of_replica_set(state.spec.name, workload.object_key, digest)
    )


def owned_by(state: MemberState, workload: Workload) -> OwnerReference:
    """Return the owner reference of an object that a member's controllers create for a workload."""
    ref = workload.ref
    return {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "name": ref.name,
        "uid": uids.of_object(state.spec.name, workload),
        "controller": True,
    }
