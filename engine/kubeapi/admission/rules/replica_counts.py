"""Validation of the replica counts in statuses of apps/v1 workloads, from the published Kubernetes API."""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.schema.resources import Resource
from events.json_values import Json

_COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "DaemonSet": (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    ),
    "Deployment": (
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
    ),
    "ReplicaSet": (
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
    ),
    "StatefulSet": ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
}
_OF_ALL: Final[Mapping[str, tuple[str, ...]]] = {
    "Deployment": ("updatedReplicas", "readyReplicas", "availableReplicas"),
    "ReplicaSet": ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
    "StatefulSet": ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
}
"""Counts that must not exceed ``status.replicas``, by kind."""


def faults(resource: Resource, status: Json) -> Iterator[Cause]:
    """Yield the errors of a status; none for kinds outside apps/v1."""
    if resource.group != "apps" or resource.kind not in _COUNTS:
        return
    for name in _COUNTS[resource.kind]:
        yield from words.not_negative(status, name, "status")
    some = _OF_ALL.get(resource.kind, ())
    for name in some:
        if _count(status, name) > _count(status, "replicas"):
            detail = "cannot be greater than status.replicas"
            yield causes.invalid(f"status.{name}", _count(status, name), detail)
    if some and _count(status, "availableReplicas") > _count(status, "readyReplicas"):
        ready = "status.readyReplicas" if resource.kind == "StatefulSet" else "readyReplicas"
        available = _count(status, "availableReplicas")
        yield causes.invalid("status.availableReplicas", available, f"cannot be greater than {ready}")


def _count(status: Json, name: str) -> int:
    value = status.get(name)
    return value if isinstance(value, int) else 0
