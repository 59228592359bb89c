"""Conversion of a work's manifest into the object to apply: pure.

Fields that the API server or the member's controllers set are removed, so that the agent never owns them. Labels and
annotations that name the cluster and the work are added, as Karmada does.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from engine.agent import messages
from engine.agent.member_api import MANAGER
from engine.domain import marks, replica_fields
from engine.domain.replica_fields import Path
from events import shapes, vocabulary
from events.json_values import Json, as_text, at, canonical_json, object_at, objects_at
from events.kube_objects import KubeObject

_METADATA_KEPT: Final = ("name", "namespace", "labels", "annotations")
_ANNOTATIONS_OF_OTHERS: Final = (
    marks.LAST_APPLIED,
    "deployment.kubernetes.io/revision",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
    "kubernetes.io/service-account.uid",
)
_RETAINED: Final[dict[tuple[str, str], tuple[Path, ...]]] = {
    # The volume is chosen once: by the template, or else by the member.
    ("v1", "PersistentVolumeClaim"): (("spec", "volumeName"),),
    # The template's port is used for a new Service; the API refuses to change it.
    ("v1", "Service"): (("spec", "healthCheckNodePort"),),
}
_HEADLESS: Final = "None"
_ACCOUNT_TOKEN: Final = "kubernetes.io/service-account-token"  # noqa: S105  # a type of Secret


class Owner(Struct, frozen=True, kw_only=True):
    """The owner of an object: the cluster and the work that it was created for."""

    cluster: str
    work: messages.Work


def prepared(manifest: msgspec.Raw | bytes, owner: Owner) -> KubeObject:
    """The object to apply. Raises msgspec.MsgspecError or RecursionError if the manifest is not a JSON object."""
    value = msgspec.json.decode(manifest, type=dict[str, object])
    value.pop("status", None)
    _prune_kind(value)
    read = KubeObject(value)
    return _with_marks(read.with_fields({"metadata": kept_metadata(read)}), owner)


def with_retained_fields(
    manifest: KubeObject, current: KubeObject | None, paths: Sequence[Path]
) -> KubeObject:
    """Return the manifest with the fields at these paths left to the member, if the member's object has them.

    A field that another manager owns is removed from the manifest. A field that only the agent owns gets its current
    value, because server-side apply would remove a field that its only owner no longer sets.
    """
    if current is None:
        return manifest
    for path in paths:
        live = current.at(*path)
        if live is not None:
            value = None if is_owned_by_others(current, path) else live
            manifest = KubeObject(_with(manifest.document, path, value))
    return manifest


def retained_paths(value: KubeObject, reading: shapes.Reading | None, *, is_scaled: bool) -> tuple[Path, ...]:
    """Paths of fields left to the member: those that its kind retains, and the replicas with ``is_scaled``."""
    declared = reading.retained if reading else ()
    paths = [
        *_RETAINED.get(value.type_meta, ()),
        *(tuple(path.removeprefix(".").split(".")) for path in declared),
    ]
    return (replicas_path(value, reading), *paths) if is_scaled else tuple(paths)


def _with(value: Json, path: Path, new: object) -> Json:
    """The object with a new value at a path; None removes the field."""
    name = path[0]
    if len(path) > 1:
        if new is None and not isinstance(value.get(name), dict):
            return value
        return {**value, name: _with(object_at(value, name), path[1:], new)}
    if new is None:
        return {field: item for field, item in value.items() if field != name}
    return {**value, name: new}


def retains_replicas(manifest: KubeObject) -> bool:
    """Whether the template leaves the number of replicas to the member."""
    return manifest.labels.get(marks.RETAIN_REPLICAS) == "true"


def replicas_path(value: KubeObject, reading: shapes.Reading | None) -> Path:
    """The path of an object's number of replicas."""
    return replica_fields.path_of(*value.type_meta, replica_fields.declared_path(reading))


def has_agent_marks(value: KubeObject, cluster: str) -> bool:
    """Whether an object has the label and annotation with which the agent of this cluster marks what it manages."""
    namespace = marks.work_namespace(cluster)
    return (
        value.labels.get(marks.MANAGED) == "true" and value.annotations.get(marks.WORK_NAMESPACE) == namespace
    )


def owned_digest(value: KubeObject, manager: str, without: Sequence[Path] = ()) -> str:
    """Digest of the fields that a manager owns by server-side apply; empty if it owns none.

    A client that changes such a field takes over its ownership, so a different digest means drift.
    The digest omits the fields at the paths ``without``, which others may own.
    """
    fields = _applied_fields(value, manager)
    if fields is None:
        return ""
    for path in without:
        owned = _owned(path)
        if at(fields, *owned) is not None:
            fields = _with(fields, owned, None)
    return hashlib.blake2b(canonical_json(fields), digest_size=8).hexdigest()


def is_applied_by_agent(value: KubeObject) -> bool:
    """Whether an agent has applied an object.

    Marks do not show it: the objects that Karmada applies in a cluster of the same name have the same marks.
    """
    return _applied_fields(value, MANAGER) is not None


def _applied_fields(value: KubeObject, manager: str) -> Json | None:
    """The fields that a manager owns by server-side apply; None if it owns none."""
    for entry in objects_at(value.metadata, "managedFields"):
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and not entry.get("subresource")
        ):
            return object_at(entry, "fieldsV1")
    return None


def is_owned_by_others(value: KubeObject, path: Path) -> bool:
    """Whether another field manager owns a field."""
    return any(
        at(object_at(entry, "fieldsV1"), *_owned(path)) is not None
        for entry in objects_at(value.metadata, "managedFields")
        if entry.get("operation") != "Apply" or entry.get("manager") != MANAGER
    )


def _owned(path: Path) -> Path:
    return tuple(f"f:{name}" for name in path)


def kept_metadata(value: KubeObject) -> Json:
    """The metadata to apply: names, labels, and those annotations that no other clients set."""
    kept = {name: value.metadata[name] for name in _METADATA_KEPT if name in value.metadata}
    annotations = object_at(kept, "annotations")
    if annotations:
        kept["annotations"] = {
            name: text for name, text in annotations.items() if name not in _ANNOTATIONS_OF_OTHERS
        }
    return kept


def _prune_kind(value: Json) -> None:
    """Remove the fields of some kinds that must not be copied to a member, such as the clusterIP of a Service."""
    spec = object_at(value, "spec")
    match as_text(value.get("apiVersion")), as_text(value.get("kind")):
        case "v1", "Service":
            if spec.get("clusterIP") != _HEADLESS:
                spec.pop("clusterIP", None)
                spec.pop("clusterIPs", None)
        case "v1", "PersistentVolume":
            # The PersistentVolumeClaim has another uid in each cluster; its name is enough to reserve the volume.
            for name in ("uid", "resourceVersion"):
                object_at(spec, "claimRef").pop(name, None)
        case "v1", "ServiceAccount":
            # Old releases of Kubernetes add a generated token; the other Secrets are the user's.
            generated = f"{as_text(at(value, 'metadata', 'name'))}-token-"
            secrets = objects_at(value, "secrets")
            kept = [item for item in secrets if not as_text(item.get("name")).startswith(generated)]
            value.pop("secrets", None)
            if kept:
                value["secrets"] = kept
        case "v1", "Secret" if value.get("type") == _ACCOUNT_TOKEN:
            value.pop("data", None)
        case "v1", "Pod":
            spec.pop("nodeName", None)
        case "batch/v1", "Job":
            # The member would delete the finished Job, and the agent would then create and run it again.
            spec.pop("ttlSecondsAfterFinished", None)
            if spec.get("manualSelector") is not True:
                spec.pop("selector", None)
                labels = object_at(spec, "template", "metadata", "labels")
                for name in vocabulary.JOB_LABELS:
                    labels.pop(name, None)
        case _:
            pass


def _with_marks(value: KubeObject, owner: Owner) -> KubeObject:
    """The object with the labels and annotations by which the agent finds its objects.

    The gateway has set all other labels and annotations of Karmada, since the agent does not know their values.
    """
    work = owner.work
    annotations: Json = {
        **value.annotations,
        marks.WORK_NAMESPACE: marks.work_namespace(owner.cluster),
        marks.WORK_NAME: work.name,
    }
    if work.template is not None:
        annotations |= marks.of_binding(work.template, "").annotations
    labels: Json = {**value.labels, marks.MANAGED: "true"}
    return marks.with_managed_names(value.with_metadata({"labels": labels, "annotations": annotations}))
