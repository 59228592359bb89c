"""Values for the page about clusters: readiness, location, taints and resource use. No HTTP here."""

from typing import Final

from msgspec import Struct

from engine.kubeapi.values import quantity
from events.json_values import Json, condition, object_at, objects_at, texts

METER_PIXELS: Final = 120
_FIRST: Final = ("cpu", "memory", "pods")
_METERS_MAX: Final = 6
_BYTES: Final = frozenset({"memory", "ephemeral-storage", "storage"})
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_KIBI: Final = 1024
_MILLI: Final = 1_000


class Meter(Struct, frozen=True, kw_only=True):
    """Use of a resource: allocated to running pods, and allocating (requested by pods that have no node yet)."""

    resource: str
    text: str
    percent: int
    allocated_pixels: int
    used_pixels: int


class Row(Struct, frozen=True, kw_only=True):
    """A cluster; ``state`` is ready, failed, waiting (no report yet) or leaving."""

    name: str
    state: str
    message: str
    location: str
    labels: list[str]
    taints: list[str]
    meters: list[Meter]


def row(cluster: Json) -> Row:
    """The row of a Cluster object."""
    metadata, spec, status = (object_at(cluster, name) for name in ("metadata", "spec", "status"))
    ready = condition(cluster, "Ready")
    location = [spec.get("provider"), spec.get("region"), ", ".join(texts(spec.get("zones")))]
    state = ("ready" if ready.get("status") == "True" else "failed") if ready else "waiting"
    message = "" if state == "ready" else str(ready.get("message", "no report yet"))
    if leaving := metadata.get("deletionTimestamp"):
        state, message = "leaving", f"since {leaving}; removed once its workloads are gone"
    return Row(
        name=str(metadata.get("name")),
        state=state,
        message=message,
        location=" / ".join(str(piece) for piece in location if piece),
        labels=[f"{name}={value}" for name, value in sorted(object_at(metadata, "labels").items())],
        taints=[_taint(taint) for taint in objects_at(spec, "taints")],
        meters=_meters(object_at(status, "resourceSummary")),
    )


def _meters(summary: Json) -> list[Meter]:
    allocatable = object_at(summary, "allocatable")
    names = [name for name in _FIRST if name in allocatable] + sorted(set(allocatable) - set(_FIRST))
    return [_meter(name, summary) for name in names[:_METERS_MAX]]


def _meter(resource: str, summary: Json) -> Meter:
    allocatable, allocated, allocating = (
        quantity.nano_units(str(object_at(summary, name).get(resource, "0")))
        for name in ("allocatable", "allocated", "allocating")
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
    """An amount for display: bytes in the largest unit that gives at least 1, others as a decimal number."""
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


def _taint(taint: Json) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"
