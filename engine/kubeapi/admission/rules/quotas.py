"""Validation of resource quotas: which resources they may limit, and to which amounts."""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.values import quantity
from events.json_values import Json
from events.kube_objects import KubeObject

_COUNTED: Final = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
    }
)
"""Resources of which a quota limits the number of objects."""

_COMPUTED: Final = ("cpu", "memory", "ephemeral-storage")
_LIMITED: Final = _COUNTED.union(
    (f"{use}{resource}" for use in ("", "requests.", "limits.") for resource in _COMPUTED),
    ("requests.storage",),
)
_HUGE_PAGES: Final = ("hugepages-", "requests.hugepages-")
_NATIVE: Final = "kubernetes.io/"
_ONE: Final = 10**9


def resource_quota(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    yield from amounts(value.object_at("spec", "hard"), "spec.hard")


def amounts(limits: Json, path: str) -> Iterator[Cause]:
    """Yield the errors of a quota's limits, which are quantities by resource; other values are not checked."""
    for resource, value in limits.items():
        where = f"{path}[{resource}]"
        yield from _name_causes(resource, where)
        size = quantity.nano_units_of(value)
        if size is None:
            continue
        if size < 0:
            yield causes.invalid(where, str(value), words.AT_LEAST_ZERO)
        if size % _ONE and (resource in _COUNTED or _is_extended(resource)):
            yield causes.invalid(where, str(value), "must be an integer")


def _name_causes(resource: str, where: str) -> Iterator[Cause]:
    faults = words.qualified_faults(resource)
    yield from words.each_invalid(where, resource, faults)
    if faults or "/" in resource or resource in _LIMITED or resource.startswith(_HUGE_PAGES):
        return
    if resource != "storage":
        yield causes.invalid(where, resource, "must be a standard resource type or fully qualified")
    yield causes.invalid(where, resource, "must be a standard resource for quota")


def _is_extended(resource: str) -> bool:
    return "/" in resource and _NATIVE not in resource and not resource.startswith("requests.")
