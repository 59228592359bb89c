"""Events that record edits of objects in a member: pure functions from the object before and after.

An unmanaged object is recorded whole. Of a managed object, only the parts that the member owns are recorded:
labels and annotations that the control plane does not set, a status, and the replicas if the template leaves them
to members (``engine.simulation.unmanaged``).
"""

import msgspec

from engine.domain import marks
from engine.simulation.state import Kept, Unmanaged
from engine.writing import object_changes
from events import clusters
from events.json_values import Json
from events.kube_objects import KubeObject


def written(
    cluster: str, item: Unmanaged | None, value: KubeObject, *, has_status: bool
) -> clusters.MemberObjectApplied:
    """Return the event that writes an unmanaged object; ``has_status``: ``value`` has a new status."""
    before: Json = {} if item is None else msgspec.json.decode(item.manifest, type=dict[str, object])
    status = value.at("status") if has_status else before.get("status")
    manifest: Json = msgspec.json.decode(object_changes.manifest(value), type=dict[str, object])
    return _event(cluster, {**manifest, "status": status} if status else manifest)


def kept(
    cluster: str, before: Kept, live: KubeObject, value: KubeObject, *, has_status: bool
) -> clusters.MemberObjectApplied:
    """Return the event of an edit of a managed object; ``before`` are its recorded parts, ``live`` is as rendered."""
    metadata: Json = {name: live.metadata[name] for name in ("name", "namespace") if name in live.metadata}
    for field, own in (("labels", dict(before.labels)), ("annotations", dict(before.annotations))):
        shown, texts = (each.object_at("metadata", field) for each in (live, value))
        if chosen := {name: text for name, text in texts.items() if name in own or name not in shown}:
            metadata[field] = chosen
    manifest: Json = {"apiVersion": live.api_version, "kind": live.kind, "metadata": metadata}
    if has_status:
        manifest["status"] = value.object_at("status")
    elif before.status:
        manifest["status"] = msgspec.json.decode(before.status)
    if live.labels.get(marks.RETAIN_REPLICAS) == "true":
        count = value.at("spec", "replicas")
        manifest["spec"] = {"replicas": count}
    return _event(cluster, manifest)


def _event(cluster: str, manifest: Json) -> clusters.MemberObjectApplied:
    return clusters.MemberObjectApplied(name=cluster, manifest=msgspec.Raw(msgspec.json.encode(manifest)))
