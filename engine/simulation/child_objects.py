"""Objects that a member's controllers create for workloads.

ReplicaSets of Deployments, ControllerRevisions, Jobs of CronJobs, PersistentVolumeClaims of StatefulSets.
"""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import structs

from engine.simulation import api_objects, cron_jobs, lists, replica_sets, uids
from engine.simulation.specs import uid
from engine.simulation.state import MemberState, Revision, Workload
from events import times
from events.json_values import Json, object_at
from events.kube_objects import KubeObject

Group = tuple[Workload, KubeObject]
"""A workload with the replicas of one pod template (``rollouts.groups``), and the manifest with that template."""


def sets(state: MemberState, groups: Sequence[Group]) -> Iterator[KubeObject]:
    """Yield the ReplicaSets of a Deployment: those of earlier revisions, and those that own its pods."""
    workload, manifest = groups[-1]
    item = state.unmanaged.get(workload.object_key) if workload.is_unmanaged else None
    revisions = {} if item is None else {revision.digest: revision for revision in item.revisions}
    used = {group.template.digest for group, _ in groups}
    for digest, revision in revisions.items():
        if digest not in used:
            old = structs.replace(
                workload,
                template=structs.replace(workload.template, digest=digest),
                replicas=0,
                cohorts=(),
                pending=0,
            )
            content = _with_template(manifest, revision)
            yield _with_revision(_replica_set(state, old, content), revision)
    for group, content in groups:
        value, revision = _replica_set(state, group, content), revisions.get(group.template.digest)
        yield value if revision is None else _with_revision(value, revision)


def written_manifest(state: MemberState, workload: Workload) -> KubeObject:
    """Return the manifest of an unmanaged object with the pod template that the replicas in ``workload`` run."""
    item = state.unmanaged.get(workload.object_key)
    if item is None:
        return KubeObject({})
    manifest = KubeObject.from_json(item.manifest)
    for revision in item.revisions[:-1]:
        if revision.digest == workload.template.digest:
            return _with_template(manifest, revision)
    return manifest


def _with_template(manifest: KubeObject, revision: Revision) -> KubeObject:
    return manifest.with_fields({"spec": {**manifest.object_at("spec"), "template": revision.pod_template}})


def _with_revision(value: KubeObject, revision: Revision) -> KubeObject:
    annotations = {**value.annotations, replica_sets.REVISION: str(revision.number)}
    created = times.to_seconds_text(revision.created_ms)
    return value.with_metadata({"annotations": annotations, "creationTimestamp": created})


def _replica_set(state: MemberState, workload: Workload, manifest: KubeObject) -> KubeObject:
    owner = api_objects.workload_object(state, workload, manifest)
    template = owner.object_at("spec", "template")
    value = replica_sets.manifest(owner, template, workload.template.digest, workload.replicas or 0, 1)
    status = owner.object_at("status")
    fields = ("replicas", "readyReplicas", "availableReplicas")
    owned = value.with_metadata(
        {
            "uid": uids.of_replica_set(state.spec.name, workload.object_key, workload.template.digest),
            "generation": 1,
            "creationTimestamp": times.to_seconds_text(workload.created_ms),
            "ownerReferences": [api_objects.owned_by(state, workload)],
        }
    )
    counts: Json = {"observedGeneration": 1, "fullyLabeledReplicas": status.get("replicas", 0)}
    return owned.with_fields({"status": {**counts, **{name: status.get(name, 0) for name in fields}}})


def started_jobs(state: MemberState, workload: Workload, manifest: KubeObject) -> Iterator[KubeObject]:
    """Yield the Jobs that a CronJob has started and that it keeps, newest first."""
    if workload.template.cron is None:
        return
    template = manifest.object_at("spec", "jobTemplate")
    for start_ms, end_ms in cron_jobs.runs(workload, workload.template.cron):
        name, began = cron_jobs.job_name(workload, start_ms), times.to_seconds_text(start_ms)
        ended: Json = {}
        if end_ms:
            at = times.to_seconds_text(end_ms)
            complete = {"type": "Complete", "status": "True", "lastProbeTime": at, "lastTransitionTime": at}
            ended = {"completionTime": at, "succeeded": 1, "conditions": [complete]}
        yield KubeObject(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    **object_at(template, "metadata"),
                    "name": name,
                    "namespace": workload.ref.namespace,
                    "uid": uid(state.spec.name, workload.object_key, "job", name),
                    "creationTimestamp": began,
                    "ownerReferences": [api_objects.owned_by(state, workload)],
                },
                "spec": object_at(template, "spec"),
                "status": {"startTime": began, **(ended or {"active": 1, "ready": 1})},
            }
        )


def controller_revisions(
    state: MemberState, workload: Workload, manifest: KubeObject
) -> Iterator[KubeObject]:
    """Yield the ControllerRevisions of a StatefulSet or DaemonSet: one per kept pod template, the current one last."""
    item = state.unmanaged.get(workload.object_key) if workload.is_unmanaged else None
    template = manifest.object_at("spec", "template")
    current = Revision(1, msgspec.json.encode(template), workload.template.digest, workload.created_ms)
    labels = object_at(template, "metadata", "labels")
    for revision in (current,) if item is None else item.revisions:
        name = f"{workload.ref.name}-{revision.digest}"
        yield KubeObject(
            {
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "metadata": {
                    "name": name,
                    "namespace": workload.ref.namespace,
                    "uid": uid(state.spec.name, workload.object_key, "revision", revision.digest),
                    "creationTimestamp": times.to_seconds_text(revision.created_ms),
                    "labels": {**labels, "controller.kubernetes.io/hash": revision.digest},
                    "ownerReferences": [
                        {**api_objects.owned_by(state, workload), "blockOwnerDeletion": True}
                    ],
                },
                "data": {"spec": {"template": {**revision.pod_template, "$patch": "replace"}}},
                "revision": revision.number,
            }
        )


def claims(state: MemberState, workload: Workload, manifest: KubeObject) -> Iterator[KubeObject]:
    """Yield the PersistentVolumeClaims of a StatefulSet's pods, from its volumeClaimTemplates."""
    templates = manifest.objects_at("spec", "volumeClaimTemplates")
    for pod in lists.pods_of(state.spec.name, workload) if templates else ():
        for template in templates:
            metadata = object_at(template, "metadata")
            name = f"{metadata.get('name')}-{pod.name}"
            yield KubeObject(
                {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "metadata": {
                        **metadata,
                        "name": name,
                        "namespace": workload.ref.namespace,
                        "labels": {**workload.template.labels, **object_at(metadata, "labels")},
                        "uid": uid(state.spec.name, "claim", workload.object_key, name),
                        "creationTimestamp": times.to_seconds_text(workload.created_ms),
                    },
                    "spec": object_at(template, "spec"),
                    "status": {"phase": "Bound"},
                }
            )


def bound_claim(value: KubeObject) -> KubeObject:
    """Return a PersistentVolumeClaim with the name, the size and the access modes of its volume."""
    spec, status = value.object_at("spec"), value.object_at("status")
    volume: Json = {"volumeName": f"pvc-{value.uid}", "volumeMode": "Filesystem"}
    size: Json = {
        "accessModes": spec.get("accessModes"),
        "capacity": object_at(spec, "resources", "requests"),
    }
    return value.with_fields({"spec": {**volume, **spec}, "status": {**size, **status}})
