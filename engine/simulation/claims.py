"""PersistentVolumeClaims of a member: those of its StatefulSets' pods, and the fields that are set at binding."""

from collections.abc import Iterator

import msgspec

from engine.simulation import lists
from engine.simulation.specs import uid
from engine.simulation.state import MemberState, Workload
from events import times
from events.json_values import Json, object_at, objects_at
from events.kube_objects import KubeObject


def claims(state: MemberState, workload: Workload, manifest: bytes) -> Iterator[KubeObject]:
    """Yield the claims of a StatefulSet's pods, by its volumeClaimTemplates."""
    templates = objects_at(msgspec.json.decode(manifest), "spec", "volumeClaimTemplates")
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


def bound(value: KubeObject) -> KubeObject:
    """Return a claim with the name, the size and the access modes of its volume."""
    spec, status = value.object_at("spec"), value.object_at("status")
    volume: Json = {"volumeName": f"pvc-{value.uid}", "volumeMode": "Filesystem"}
    size: Json = {
        "accessModes": spec.get("accessModes"),
        "capacity": object_at(spec, "resources", "requests"),
    }
    return value.with_fields({"spec": {**volume, **spec}, "status": {**size, **status}})
