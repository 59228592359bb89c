"""Kinds that are served in another form than the one in which they are kept, and the way between the two."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, structs

from engine.kube import autoscalers, secrets
from engine.kube.autoscalers import ConversionError
from engine.kube.resources import Resource, control_plane
from engine.kube.schemas import Json

__all__ = ["ConversionError", "kept", "shown", "stored"]


class _Conversion(Struct, frozen=True):
    """The version in which a kind is kept; from it, and to it."""

    api_version: str
    shown: Callable[[Json], Json]
    kept: Callable[[Json], Json]


_CONVERSIONS: Final[Mapping[tuple[str, str], _Conversion]] = {
    (autoscalers.V1, "HorizontalPodAutoscaler"): _Conversion(
        autoscalers.V2, autoscalers.shown, autoscalers.kept
    ),
    ("v1", "Secret"): _Conversion("v1", dict, secrets.kept),
}


def stored(resource: Resource) -> Resource:
    """The same kind in the version in which it is kept."""
    conversion = _CONVERSIONS.get((resource.api_version, resource.kind))
    if conversion is None:
        return resource
    found = control_plane().of_kind(conversion.api_version, resource.kind)
    return found or structs.replace(resource, version=conversion.api_version.rpartition("/")[2])


def shown(resource: Resource, value: Json) -> Json:
    """An object as it is kept, in the version that was asked for."""
    conversion = _CONVERSIONS.get((resource.api_version, resource.kind))
    return value if conversion is None else conversion.shown(value)


def kept(resource: Resource, value: Json) -> Json:
    """An object in the version that was asked for, as it is kept; raises ConversionError."""
    return _kept(resource.api_version, resource.kind, value)


def _kept(api_version: str, kind: str, value: Json) -> Json:
    conversion = _CONVERSIONS.get((api_version, kind))
    return value if conversion is None else conversion.kept(value)
