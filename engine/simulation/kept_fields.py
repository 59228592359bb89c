"""Labels, annotations, status and replicas that an object in a member keeps when the control plane manages it."""

from typing import Final

import msgspec
from msgspec import structs

from engine.domain import marks, replica_fields
from engine.simulation.state import KeptFields, Unmanaged, Workload
from engine.works import templates
from events import clusters
from events.json_values import Json
from events.kube_objects import KubeObject

REPLICAS: Final = ("spec", "replicas")
"""Path at which ``read`` expects the replicas of each kind, also of kinds whose objects have them elsewhere."""


def taken_over(item: Unmanaged) -> KeptFields:
    """Return the labels and annotations that an object keeps when the control plane takes it over."""
    kept = read(item.manifest)
    return KeptFields(labels=kept.labels, annotations=kept.annotations)


def retained(workload: Workload, kept: KeptFields, template: templates.Template) -> KeptFields:
    """Return ``kept`` with a replica count if the template lets members decide it, else without one.

    The count is that of ``kept``, or if it has none, the workload's present one.
    """
    counts = (kept.replicas, workload.replicas, workload.desired) if template.retains else ()
    return with_replicas(kept, next((count for count in counts if count is not None), None))


def with_replicas(kept: KeptFields, replicas: int | None) -> KeptFields:
    """Return the fields with this replica count; the same object if the count is the same, to save memory."""
    return kept if kept.replicas == replicas else structs.replace(kept, replicas=replicas)


def read(manifest: bytes) -> KeptFields:
    """Return the content to keep from the manifest that a client wrote for a managed object."""
    value = KubeObject.from_json(manifest)
    status, count = value.object_at("status"), value.at(*REPLICAS)
    return KeptFields(
        labels=_texts(value.labels),
        annotations=_texts(value.annotations),
        status=msgspec.json.encode(status) if status else b"",
        replicas=max(count, 0) if isinstance(count, int) else None,
    )


def manifest_of_kept(workload: Workload) -> KubeObject:
    """Return a manifest from which ``read`` reads the content that a managed object keeps, without its replicas."""
    ref, kept = workload.ref, workload.kept
    metadata: Json = {"name": ref.name, **({"namespace": ref.namespace} if ref.namespace else {})}
    for field, texts in (("labels", kept.labels), ("annotations", kept.annotations)):
        if texts:
            metadata[field] = dict(texts)
    status: Json = {"status": msgspec.json.decode(kept.status)} if kept.status else {}
    return KubeObject({"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, **status})


def edited(
    cluster: str, workload: Workload, live: KubeObject, value: KubeObject, *, has_status: bool
) -> clusters.MemberObjectApplied:
    """Return the event of a client's edit of a managed object; it has only the content that the object keeps.

    ``live`` is the rendered object, ``value`` the edited one. Without ``has_status`` the status stays.
    """
    before = workload.kept
    metadata: Json = {name: live.metadata[name] for name in ("name", "namespace") if name in live.metadata}
    for field, own in (("labels", dict(before.labels)), ("annotations", dict(before.annotations))):
        shown, texts = live.object_at("metadata", field), value.object_at("metadata", field)
        if chosen := {name: text for name, text in texts.items() if name in own or name not in shown}:
            metadata[field] = chosen
    manifest: Json = {"apiVersion": live.api_version, "kind": live.kind, "metadata": metadata}
    if has_status:
        manifest["status"] = value.object_at("status")
    elif before.status:
        manifest["status"] = msgspec.json.decode(before.status)
    if live.labels.get(marks.RETAIN_REPLICAS) == "true":
        declared = replica_fields.declared_path(workload.source.reading)
        path = replica_fields.path_of(live.api_version, live.kind, declared)
        manifest["spec"] = {"replicas": value.at(*path)}
    return clusters.MemberObjectApplied(name=cluster, manifest=KubeObject(manifest).raw)


def _texts(values: Json) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, text) for name, text in values.items() if isinstance(text, str)))
