"""Conversion of Kubernetes Events between ``events.k8s.io/v1`` and ``v1``, the form in which they are stored."""

from typing import Final

from events.kube_objects import KubeObject

CORE: Final = "v1"
NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""Field names of ``v1`` with the names of the same fields in ``events.k8s.io/v1``."""

_CORE_NAMES: Final = {other: name for name, other in NAMES.items()}


def to_served(value: KubeObject, api_version: str) -> KubeObject:
    """Convert an Event of ``v1`` to the API version ``api_version``."""
    return value if api_version == CORE else _renamed(value, NAMES, api_version)


def to_stored(value: KubeObject) -> KubeObject:
    """Convert an Event of either version to ``v1``."""
    return value if value.api_version == CORE else _renamed(value, _CORE_NAMES, CORE)


def _renamed(value: KubeObject, names: dict[str, str], api_version: str) -> KubeObject:
    fields = {names.get(name, name): item for name, item in value.document.items()}
    return KubeObject(fields | {"apiVersion": api_version})
