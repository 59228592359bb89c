"""Validation of Kubernetes' own kinds: names, metadata, values and changes, from the published API.

The rules apply to objects after defaulting. A change is not refused for errors that the stored object already
had, so an object that another producer wrote without this validation can still be labelled.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from engine.kubeapi.admission.rules import (
    autoscaling,
    classes,
    core,
    definitions,
    devices,
    flow_control,
    networking,
    pods,
    quotas,
    rbac,
    workloads,
)
from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.schema.custom_kinds import DEFINITIONS
from engine.kubeapi.schema.resources import Resource
from events.json_values import Json, list_at, objects_at
from events.kube_objects import KubeObject

_Rule = Callable[[KubeObject, KubeObject | None], Iterator[Cause]]
_CRON_NAME_CHARS_MAX: Final = 52
_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")

_RULES: Final[Mapping[tuple[str, str], _Rule]] = {
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): definitions.definition,
    ("autoscaling", "HorizontalPodAutoscaler"): autoscaling.autoscaler,
    ("batch", "CronJob"): workloads.cron_job,
    ("batch", "Job"): workloads.job,
    ("", "ConfigMap"): core.config_map,
    ("", "Event"): core.core_event,
    ("", "PersistentVolumeClaim"): core.claim,
    ("", "Pod"): pods.pod,
    ("", "PodTemplate"): pods.pod_template,
    ("", "ResourceQuota"): quotas.resource_quota,
    ("", "Secret"): core.secret,
    ("", "Service"): core.service,
    ("events.k8s.io", "Event"): core.event,
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): flow_control.flow_schema,
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): flow_control.priority_level,
    ("networking.k8s.io", "Ingress"): networking.ingress,
    ("networking.k8s.io", "NetworkPolicy"): networking.network_policy,
    ("networking.k8s.io", "ServiceCIDR"): networking.service_cidr,
    ("node.k8s.io", "RuntimeClass"): classes.runtime_class,
    ("policy", "PodDisruptionBudget"): workloads.disruption_budget,
    ("rbac.authorization.k8s.io", "ClusterRole"): rbac.role,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): rbac.role_binding,
    ("rbac.authorization.k8s.io", "Role"): rbac.role,
    ("rbac.authorization.k8s.io", "RoleBinding"): rbac.role_binding,
    ("resource.k8s.io", "DeviceClass"): devices.device_class,
    ("resource.k8s.io", "ResourceClaim"): devices.resource_claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): devices.resource_claim_template,
    ("resource.k8s.io", "ResourceSlice"): devices.resource_slice,
    ("scheduling.k8s.io", "PriorityClass"): workloads.priority_class,
    ("storage.k8s.io", "CSIStorageCapacity"): classes.storage_capacity,
    ("storage.k8s.io", "StorageClass"): classes.storage_class,
    ("storage.k8s.io", "VolumeAttributesClass"): classes.volume_attributes_class,
}


def faults(resource: Resource, now: KubeObject, before: KubeObject | None) -> list[Cause]:
    """Return the errors of an object, or those that a change from ``before`` adds; both objects have their defaults.

    For custom kinds only the metadata is validated. Karmada's kinds are not validated here.
    """
    if not (resource.is_kubernetes_own or resource.custom):
        return []
    result = words.bounded(_faults(resource, now, before))
    if not result or before is None:
        return result
    # Errors that the stored object has already must not block an unrelated change.
    known = set(words.bounded(_faults(resource, before, None)))
    return [cause for cause in result if cause not in known]


def _faults(resource: Resource, value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    metadata = value.metadata
    before = None if live is None else live.metadata
    yield from _names(resource, metadata)
    if "labels" in metadata:
        yield from words.labels(metadata["labels"], "metadata.labels")
    if "annotations" in metadata:
        yield from words.annotations(metadata["annotations"], "metadata.annotations")
    if "ownerReferences" in metadata:
        yield from _owners(objects_at(metadata, "ownerReferences"))
    if "finalizers" in metadata:
        yield from _finalizers(resource, metadata, before)
    rule = _RULES.get((resource.group, resource.kind))
    if rule is not None:
        yield from rule(value, live)


def _names(resource: Resource, metadata: Json) -> Iterator[Cause]:
    prefix, name = metadata.get("generateName"), str(metadata.get("name") or "")
    if isinstance(prefix, str) and prefix:
        shape = prefix.removesuffix("-") + "a" if prefix.endswith("-") else prefix
        yield from words.each_invalid("metadata.generateName", prefix, _name_faults(resource, shape))
    yield from words.each_invalid("metadata.name", name, _name_faults(resource, name))


def _name_faults(resource: Resource, name: str) -> list[str]:
    match resource.group, resource.kind:
        case ("", "Event") | ("certificates.k8s.io" | "rbac.authorization.k8s.io", _):
            return words.segment_faults(name)
        case "", "Namespace":
            return ["must not contain dots"] if "." in name else words.label_faults(name)
        case "", "Service":
            return words.old_label_faults(name)
        case "batch", "CronJob":
            result = words.subdomain_faults(name)
            if not result and len(name) > _CRON_NAME_CHARS_MAX:
                result = [f"must be no more than {_CRON_NAME_CHARS_MAX} characters"]
            return result
        case _:
            return words.subdomain_faults(name)


def _owners(references: list[Json]) -> Iterator[Cause]:
    path = "metadata.ownerReferences"
    leader: Json | None = None
    for reference in references:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not reference.get(name):
                where = f"{path}.{'version' if name == 'apiVersion' else name}"
                yield causes.invalid(where, reference.get(name) or "", "must not be empty")
        if (reference.get("apiVersion"), reference.get("kind")) == ("v1", "Event"):
            yield causes.invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner")
        if reference.get("controller") is not True:
            continue
        if leader is None:
            leader = reference
            continue
        first, second = (f"{owner.get('kind')}/{owner.get('name')}" for owner in (leader, reference))
        detail = (
            "Only one reference can have Controller set to true."
            f' Found "true" in references for {first} and {second}'
        )
        yield causes.whole(path, references, detail)


def _finalizers(resource: Resource, metadata: Json, before: Json | None) -> Iterator[Cause]:
    is_open = resource.custom or resource.qualified == DEFINITIONS
    listed = [finalizer for finalizer in list_at(metadata, "finalizers") if isinstance(finalizer, str)]
    for index, finalizer in enumerate(listed):
        yield from words.each_invalid("metadata.finalizers", finalizer, words.qualified_faults(finalizer))
        if not is_open and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield causes.invalid(f"metadata.finalizers[{index}]", finalizer, detail)
    if before is not None and "deletionTimestamp" in before:
        known = {finalizer for finalizer in list_at(before, "finalizers") if isinstance(finalizer, str)}
        new = sorted(finalizer for finalizer in listed if finalizer not in known)
        if new:
            shown = ", ".join(f'"{finalizer}"' for finalizer in new)
            detail = (
                "no new finalizers can be added if the object is being deleted,"
                f" found new finalizers []string{{{shown}}}"
            )
            yield causes.forbidden("metadata.finalizers", detail)
