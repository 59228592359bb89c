"""Values for the page about clusters: readiness, location, taints and resource use. No HTTP here."""

from typing import Final

from msgspec import Struct

from engine.http.json_parts import Json, condition, items, part, texts
from engine.kubeapi.values import quantity

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
    metadata, spec, status = (part(cluster, name) for name in ("metadata", "spec", "status"))
    found = condition(cluster, "Ready")
    place = [spec.get("provider"), spec.get("region"), ", ".join(texts(spec.get("zones")))]
    state = ("ready" if found.get("status") == "True" else "failed") if found else "waiting"
    message = "" if state == "ready" else str(found.get("message", "it has not reported yet"))
    if leaving := metadata.get("deletionTimestamp"):
        state, message = "leaving", f"since {leaving}; it goes once nothing of ours is left in it"
    return Row(
        name=str(metadata.get("name")),
        state=state,
        message=message,
        location=" / ".join(str(each) for each in place if each),
        labels=[f"{name}={value}" for name, value in sorted(part(metadata, "labels").items())],
        taints=[_taint(each) for each in items(spec.get("taints"))],
        meters=_meters(part(status, "resourceSummary")),
    )


def _meters(summary: Json) -> list[Meter]:
    room = part(summary, "allocatable")
    names = [name for name in _FIRST if name in room] + sorted(set(room) - set(_FIRST))
    return [_meter(name, summary) for name in names[:_METERS_MAX]]


def _meter(resource: str, summary: Json) -> Meter:
    room, allocated, allocating = (
        quantity.nano_units(str(part(summary, name).get(resource, "0")))
        for name in ("allocatable", "allocated", "allocating")
    )
    used = allocated + allocating
    return Meter(
        resource=resource,
        text=f"{_amount(resource, used)} of {_amount(resource, room)}",
        percent=100 * used // room if room else 0,
        allocated_pixels=_pixels(allocated, room),
        used_pixels=_pixels(used, room),
    )


def _pixels(part: int, whole: int) -> int:
    return min(max(METER_PIXELS * part // max(whole, 1), 1), METER_PIXELS) if part else 0


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
