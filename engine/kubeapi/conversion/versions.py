"""Kinds that are stored in another form than the one in which they are served, and their conversion."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, structs

from engine.kubeapi.conversion import autoscalers, secrets
from engine.kubeapi.conversion.autoscalers import ConversionError
from engine.kubeapi.schema.resources import Resource, control_plane
from events.kube_objects import KubeObject

__all__ = ["ConversionError", "kept", "shown", "stored"]


class _Conversion(Struct, frozen=True):
    """The stored apiVersion of a kind, and the conversions from (``shown``) and to (``kept``) it."""

    api_version: str
    shown: Callable[[KubeObject], KubeObject]
    kept: Callable[[KubeObject], KubeObject]


_CONVERSIONS: Final[Mapping[tuple[str, str], _Conversion]] = {
    (autoscalers.V1, "HorizontalPodAutoscaler"): _Conversion(
        autoscalers.V2, autoscalers.shown, autoscalers.kept
    ),
    ("v1", "Secret"): _Conversion("v1", lambda value: value, secrets.kept),
}


def stored(resource: Resource) -> Resource:
    """Return the resource in its stored version; most kinds are stored as they are served."""
    conversion = _CONVERSIONS.get((resource.api_version, resource.kind))
    if conversion is None:
        return resource
    stored_kind = control_plane().of_kind(conversion.api_version, resource.kind)
    return stored_kind or structs.replace(resource, version=conversion.api_version.rpartition("/")[2])


def shown(resource: Resource, value: KubeObject) -> KubeObject:
    """Convert a stored object to the requested version."""
    conversion = _CONVERSIONS.get((resource.api_version, resource.kind))
    return value if conversion is None else conversion.shown(value)


def kept(resource: Resource, value: KubeObject) -> KubeObject:
    """Convert an object of the requested version to its stored form; raises ConversionError."""
    conversion = _CONVERSIONS.get((resource.api_version, resource.kind))
    return value if conversion is None else conversion.kept(value)
