"""The scale subresource: an object as a Scale, and a Scale written back into its object."""

from typing import Final

from msgspec import structs

from engine.kube.columns import selector
from engine.kube.resources import SCALE_KIND, Resource, ScalePaths
from engine.kube.schemas import Json, as_object
from events import json_paths

_KEPT: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_PATHS: Final = ScalePaths(spec_replicas=".spec.replicas", status_replicas=".status.replicas")
_SELECTOR: Final = "spec.selector"


class ScaleError(ValueError):
    """A Scale that can't be written back; ``field`` and reason say why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


def scale_of(resource: Resource, value: Json) -> Json:
    """The Scale of an object (autoscaling/v1); its metadata are the object's own."""
    paths = resource.scale or _PATHS
    metadata = as_object(value.get("metadata")) or {}
    status: Json = {"replicas": _count(value, paths.status_replicas)}
    chosen = _selector(resource, value)
    if chosen:
        status["selector"] = chosen
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _KEPT if name in metadata},
        "spec": {"replicas": _count(value, paths.spec_replicas)},
        "status": status,
    }


def kind_of(resource: Resource) -> Resource:
    """The kind of which the Scales of a resource are; it is shown as Scales are."""
    group, version, kind = SCALE_KIND
    return structs.replace(resource, group=group, version=version, kind=kind, columns=())


def scaled(resource: Resource, value: Json, scale: Json) -> Json:
    """The object with the replicas of a Scale; raises ScaleError where that has none that can be."""
    replicas = (as_object(scale.get("spec")) or {}).get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise ScaleError("spec.replicas", "must be a whole number")
    if replicas < 0:
        raise ScaleError("spec.replicas", "must be greater than or equal to 0")
    paths = resource.scale or _PATHS
    return _with(value, paths.spec_replicas.strip(".").split("."), replicas)


def _with(value: Json, names: list[str], replicas: int) -> Json:
    name, *below = names
    held = as_object(value.get(name)) or {}
    return {**value, name: _with(held, below, replicas) if below else replicas}


def _count(value: Json, path: str) -> int:
    found = json_paths.found(value, path)
    return found[0] if found and isinstance(found[0], int) else 0


def _selector(resource: Resource, value: Json) -> str:
    if resource.scale is not None:
        found = (
            json_paths.found(value, resource.scale.label_selector) if resource.scale.label_selector else []
        )
        return str(found[0]) if found else ""
    return str(selector(_SELECTOR)(value, 0)) if (as_object(value.get("spec")) or {}).get("selector") else ""
