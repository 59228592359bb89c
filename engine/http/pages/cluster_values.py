"""Values for the page about clusters: readiness, location, taints and resource use. No HTTP here."""

from typing import Final

import msgspec
from msgspec import Struct

from engine.kubeapi.values import quantity
from engine.objects import clusters
from engine.objects.bindings import Condition
from events.kube_objects import KubeObject

METER_PIXELS: Final = 120
_FIRST: Final = ("cpu", "memory", "pods")
_METERS_MAX: Final = 6
_BYTES: Final = frozenset({"memory", "ephemeral-storage", "storage"})
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_KIBI: Final = 1024
_MILLI: Final = 1_000


class _Status(clusters.ClusterStatus, frozen=True, kw_only=True, rename="camel"):
    conditions: tuple[Condition, ...] = ()


class Cluster(Struct, frozen=True, kw_only=True):
    """A Cluster object with its conditions."""

    metadata: clusters.ClusterMetadata
    spec: clusters.ClusterSpec = clusters.ClusterSpec()
    status: _Status = _Status()


class Meter(Struct, frozen=True, kw_only=True):
    """Use of a resource by pods; ``used_pixels`` includes pods without a node, ``allocated_pixels`` does not.

    ``percent`` is the share of the allocatable amount that is used, pods without a node included.
    """

    resource: str
    text: str
    percent: int
    allocated_pixels: int
    used_pixels: int


class Row(Struct, frozen=True, kw_only=True):
    """A cluster; ``state`` is ready, failed, waiting (no report yet) or removing."""

    name: str
    state: str
    message: str
    location: str
    labels: list[str]
    taints: list[str]
    meters: list[Meter]


def row(cluster: Cluster) -> Row:
    metadata, spec = cluster.metadata, cluster.spec
    ready = next((condition for condition in cluster.status.conditions if condition.type == "Ready"), None)
    location = [spec.provider, spec.region, ", ".join(spec.zones)]
    state = "waiting" if ready is None else "ready" if ready.status == "True" else "failed"
    message = "no report yet" if ready is None else "" if state == "ready" else ready.message
    if metadata.deletion_timestamp:
        state, message = (
            "removing",
            f"since {metadata.deletion_timestamp}; removed when its workloads are deleted",
        )
    return Row(
        name=metadata.name,
        state=state,
        message=message,
        location=" / ".join(filter(None, location)),
        labels=[f"{name}={value}" for name, value in sorted(metadata.labels.items())],
        taints=[taint.text for taint in spec.taints],
        meters=_meters(cluster.status.resource_summary or clusters.ResourceSummary()),
    )


def read(value: KubeObject) -> Cluster:
    return msgspec.convert(value.document, Cluster)


def _meters(summary: clusters.ResourceSummary) -> list[Meter]:
    allocatable = summary.allocatable
    names = [name for name in _FIRST if name in allocatable] + sorted(set(allocatable) - set(_FIRST))
    return [_meter(name, summary) for name in names[:_METERS_MAX]]


def _meter(resource: str, summary: clusters.ResourceSummary) -> Meter:
    allocatable, allocated, allocating = (
        quantity.nano_units(str(amounts.get(resource, "0")))
        for amounts in (summary.allocatable, summary.allocated, summary.allocating)
    )
    used = allocated + allocating
    return Meter(
        resource=resource,
        text=f"{_amount(resource, used)} of {_amount(resource, allocatable)}",
        percent=100 * used // allocatable if allocatable else 0,
        allocated_pixels=_pixels(allocated, allocatable),
        used_pixels=_pixels(used, allocatable),
    )


def _pixels(part: int, total: int) -> int:
    return min(max(METER_PIXELS * part // max(total, 1), 1), METER_PIXELS) if part else 0


def _amount(resource: str, nano: int) -> str:
    """An amount for display: bytes in the largest binary unit that fits, other resources as a decimal number."""
    if resource not in _BYTES:
        milli = quantity.ceil_milli(nano)
        return (
            str(milli // _MILLI)
            if milli % _MILLI == 0
            else f"{milli // _MILLI}.{milli % _MILLI:03}".rstrip("0")
        )
    count, unit = quantity.ceil_whole(nano), 0
    while count >= _KIBI ** (unit + 1) and unit + 1 < len(_UNITS):
        unit += 1
    tenths = 10 * count // _KIBI**unit
    return f"{tenths // 10}{f'.{tenths % 10}' if tenths % 10 else ''} {_UNITS[unit]}"
