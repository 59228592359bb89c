"""PersistentVolumeClaims of a member: those of its StatefulSets' pods, and what binding them to a volume sets."""

from collections.abc import Iterator

import msgspec

from engine.simulation import lists
from engine.simulation.specs import uid
from engine.simulation.state import MemberState, Workload
from events import times
from events.json_values import Json, as_objects, part


def claims(state: MemberState, workload: Workload, manifest: bytes) -> Iterator[Json]:
    """Yield the claims of a StatefulSet's pods, by its volumeClaimTemplates."""
    templates = as_objects(part(msgspec.json.decode(manifest), "spec").get("volumeClaimTemplates"))
    for pod in lists.pods_of(state, workload) if templates else ():
        for template in templates:
            metadata = part(template, "metadata")
            name = f"{metadata.get('name')}-{pod.name}"
            yield {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    **metadata,
                    "name": name,
                    "namespace": workload.ref.namespace,
                    "labels": {**workload.template.labels, **part(metadata, "labels")},
                    "uid": uid(state.spec.name, "claim", workload.object_key, name),
                    "creationTimestamp": times.to_seconds_text(workload.created_ms),
                },
                "spec": part(template, "spec"),
                "status": {"phase": "Bound"},
            }


def bound(value: Json) -> Json:
    """Return a claim with the name, the size and the access modes of its volume."""
    spec, status = part(value, "spec"), part(value, "status")
    volume: Json = {"volumeName": f"pvc-{part(value, 'metadata').get('uid')}", "volumeMode": "Filesystem"}
    size: Json = {"accessModes": spec.get("accessModes"), "capacity": part(spec, "resources", "requests")}
    return {**value, "spec": {**volume, **spec}, "status": {**size, **status}}
