"""Kinds that are stored in another form than the one in which they are served, and their conversion.

``stringData`` of a Secret is write-only and takes precedence over ``data``: it is encoded into ``data`` and removed. A
manager of a key in ``stringData`` owns that key in ``data``.
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, structs

from engine.kubeapi.conversion import autoscalers, kubernetes_events
from engine.kubeapi.conversion.autoscalers import ConversionError
from engine.kubeapi.patching import managed_fields
from engine.kubeapi.schema import type_errors
from engine.kubeapi.schema.resources import Resource, control_plane
from engine.kubeapi.values import secret_texts
from events.json_values import as_object
from events.kube_objects import KubeObject

_TEXTS: Final = "stringData"
_DATA: Final = "data"


def stored_secret(value: KubeObject) -> KubeObject:
    """Return the stored form of a Secret; a malformed one is unchanged, so that validation reports it."""
    document = value.document
    if _TEXTS not in document:
        return value
    texts, data = as_object(document[_TEXTS]), as_object(document.get(_DATA) or {})
    rest = value.without_fields(_TEXTS)
    if not document[_TEXTS]:
        return rest
    if texts is None or data is None or not all(isinstance(text, str) for text in texts.values()):
        return value
    encoded = secret_texts.encoded(texts)
    return managed_fields.renamed(
        rest.with_fields({_DATA: {**data, **encoded}}),
        lambda path: (f"f:{_DATA}", *path[1:]) if path[0] == f"f:{_TEXTS}" else path,
    )


__all__ = ["ConversionError", "stored", "to_served", "to_stored"]


class _Conversion(Struct, frozen=True):
    """The apiVersion in which a kind is stored, and the conversions from it and to it."""

    api_version: str
    to_served: Callable[[KubeObject], KubeObject]
    to_stored: Callable[[KubeObject], KubeObject]


_CONVERSIONS: Final[Mapping[tuple[str, str], _Conversion]] = {
    (autoscalers.V1, "HorizontalPodAutoscaler"): _Conversion(
        autoscalers.V2, autoscalers.to_served, autoscalers.to_stored
    ),
    ("events.k8s.io/v1", "Event"): _Conversion(
        kubernetes_events.CORE,
        lambda value: kubernetes_events.to_served(value, "events.k8s.io/v1"),
        kubernetes_events.to_stored,
    ),
    ("v1", "Secret"): _Conversion("v1", lambda value: value, stored_secret),
}


def stored(resource: Resource) -> Resource:
    """Return the resource in its stored version; most kinds are stored as they are served."""
    conversion = _CONVERSIONS.get((resource.api_version, resource.kind))
    if conversion is None:
        return resource
    stored_kind = control_plane().of_kind(conversion.api_version, resource.kind)
    return stored_kind or structs.replace(resource, version=conversion.api_version.rpartition("/")[2])


def to_served(resource: Resource, value: KubeObject) -> KubeObject:
    """Convert a stored object to the version of ``resource``."""
    conversion = _CONVERSIONS.get((resource.api_version, resource.kind))
    return value if conversion is None else conversion.to_served(value)


def to_stored(resource: Resource, value: KubeObject) -> KubeObject:
    """Convert an object in the version of ``resource`` to its stored form; raises ConversionError."""
    conversion = _CONVERSIONS.get((resource.api_version, resource.kind))
    if conversion is None:
        return value
    result = conversion.to_stored(value)
    if conversion.api_version != resource.api_version:
        # Fields that were annotations have unchecked types. If one were wrong, typed clients could not decode the
        # object, nor any list that contains it.
        wrong = type_errors.mistyped(result.document, stored(resource).schema)
        if wrong is not None:
            raise ConversionError(f"metadata.annotations: {wrong.message}")
    return result
