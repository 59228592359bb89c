"""The scale subresource: read an object as a Scale, and write a Scale back to its object."""

from typing import Final

from msgspec import structs

from engine.kubeapi.patching import managed_fields
from engine.kubeapi.patching.managed_fields import Owned, Path
from engine.kubeapi.schema.resources import Resource, ScalePaths
from engine.kubeapi.schema.schemas import Named
from engine.kubeapi.values import selector_texts
from events import json_paths
from events.json_values import Json, object_at
from events.kube_objects import KubeObject

_METADATA_KEPT: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_PATHS: Final = ScalePaths(spec_replicas=".spec.replicas", status_replicas=".status.replicas")


SCALE: Final = Resource(
    group="autoscaling",
    version="v1",
    kind="Scale",
    plural="scales",
    singular="scale",
    schema=Named(name="autoscaling.Scale"),
)
"""The kind of the subresource's body."""

REPLICAS: Final[Path] = ("f:spec", "f:replicas")


class ScaleError(ValueError):
    """A Scale with invalid replicas; ``field`` and ``reason`` describe the error."""

    def __init__(self, field: str, value: object, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.value = value
        self.reason = reason


def scale_of(resource: Resource, value: KubeObject) -> KubeObject:
    """Return the Scale (autoscaling/v1) of an object."""
    paths = resource.scale or _PATHS
    metadata = value.metadata
    status: Json = {"replicas": _count(value, paths.status_replicas)}
    chosen = _selector(resource, value)
    if chosen:
        status["selector"] = chosen
    return KubeObject(
        {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {name: metadata[name] for name in _METADATA_KEPT if name in metadata},
            "spec": {"replicas": _count(value, paths.spec_replicas)},
            "status": status,
        }
    )


def scaled(resource: Resource, value: KubeObject, scale: KubeObject) -> KubeObject:
    """Return the object with the replicas of a Scale; raises ScaleError if they are invalid."""
    replicas = scale.object_at("spec").get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise ScaleError("spec.replicas", replicas, "must be a whole number")
    if replicas < 0 and resource.custom:
        raise ScaleError(".spec.replicas", replicas, "should be a non-negative integer")
    if replicas < 0:
        raise ScaleError("spec.replicas", replicas, "must be greater than or equal to 0")
    paths = resource.scale or _PATHS
    return KubeObject(_with(value.document, paths.spec_replicas.strip(".").split("."), replicas))


def owned(resource: Resource, value: KubeObject) -> list[Json]:
    """Return the managers of an object's replicas as managedFields of its Scale; raises ManagedFieldsError."""
    path = _path(resource)
    owners = managed_fields.read(value)
    return managed_fields.write(
        {
            manager: Owned(fields=frozenset({REPLICAS}), api_version=SCALE.api_version, time=owned.time)
            for manager, owned in owners.items()
            if path in owned.fields
        }
    )


def with_owners(resource: Resource, value: KubeObject, scale: KubeObject) -> KubeObject:
    """Return the object with its replicas owned by the owners in the Scale; raises ManagedFieldsError."""
    path = _path(resource)
    owners = {
        manager: structs.replace(owned, fields=owned.fields - {path})
        for manager, owned in managed_fields.read(value).items()
    }
    for manager, owned in managed_fields.read(scale).items():
        if REPLICAS in owned.fields:
            before = owners.get(manager) or Owned(fields=frozenset(), api_version=resource.api_version)
            owners[manager] = structs.replace(before, fields=before.fields | {path})
    return managed_fields.replaced(value, managed_fields.write(owners))


def _path(resource: Resource) -> Path:
    """Return the field path of the replicas of a kind."""
    names = (resource.scale or _PATHS).spec_replicas.strip(".").split(".")
    return tuple(f"f:{name}" for name in names)


def _with(value: Json, names: list[str], replicas: int) -> Json:
    name, *below = names
    fields = object_at(value, name)
    return {**value, name: _with(fields, below, replicas) if below else replicas}


def _count(value: KubeObject, path: str) -> int:
    values = json_paths.values_at(value.document, path)
    return values[0] if values and isinstance(values[0], int) else 0


def _selector(resource: Resource, value: KubeObject) -> str:
    if resource.scale is not None:
        values = (
            json_paths.values_at(value.document, resource.scale.label_selector)
            if resource.scale.label_selector
            else []
        )
        return str(values[0]) if values else ""
    selector = value.object_at("spec", "selector")
    # The selector of a ReplicationController is a map of labels.
    is_map = resource.kind == "ReplicationController"
    return selector_texts.of({"matchLabels": selector} if is_map else selector)
