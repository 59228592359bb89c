"""Who owns which fields, as ``metadata.managedFields`` shows it: what clients wrote, and what the engine writes itself.

What the engine says of an object follows from the log and is written by nobody. So its part is made from the fields
that are shown, with no time, under the one name ``ENGINE``; it is never kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, cast

import msgspec

from events import shapes

ENGINE: Final = "reballast"
"""The manager of all that the engine says."""

STATUS: Final = "status"
_ITSELF: Final = "."
Json = dict[str, object]
_Owners = tuple[shapes.FieldsOwner, ...]
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def encode(owners: _Owners) -> bytes:
    """The owners as a row keeps them; empty for none."""
    return _ENCODER.encode(owners) if owners else b""


def decode(raw: bytes) -> _Owners:
    """The owners of a row."""
    if not raw:
        return ()
    try:
        return msgspec.json.decode(raw, type=_Owners)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ()


def entries(owners: Iterable[shapes.FieldsOwner]) -> list[Json]:
    """The entries for what clients wrote."""
    return [
        {
            "manager": owner.manager,
            "operation": owner.operation,
            "apiVersion": owner.api_version,
            **({"time": owner.time} if owner.time else {}),
            "fieldsType": "FieldsV1",
            "fieldsV1": _fields(owner.fields_v1),
            **({"subresource": owner.subresource} if owner.subresource else {}),
        }
        for owner in owners
    ]


def of_entries(values: Sequence[object]) -> _Owners:
    """What clients wrote, out of entries of ``managedFields``; the engine's own part is made anew each time."""
    found: list[shapes.FieldsOwner] = []
    for item in values:
        entry = cast("Json", item) if isinstance(item, dict) else {}
        fields = entry.get("fieldsV1")
        if not isinstance(fields, dict) or is_engines(entry):
            continue
        names = ("manager", "operation", "apiVersion", "time", "subresource")
        manager, operation, api_version, time, subresource = (str(entry.get(name) or "") for name in names)
        found.append(
            shapes.FieldsOwner(
                manager=manager,
                operation=operation,
                api_version=api_version,
                time=time,
                subresource=subresource,
                fields_v1=msgspec.Raw(_ENCODER.encode(fields)),
            )
        )
    return tuple(found)


def is_engines(entry: Mapping[str, object]) -> bool:
    """Whether an entry is the engine's own part."""
    return (entry.get("manager"), entry.get("operation")) == (ENGINE, "Update")


def is_of_status(entry: Mapping[str, object]) -> bool:
    """Whether an entry tells of writes of the status."""
    return entry.get("subresource") == STATUS


def of_engine(api_version: str, part: str, fields: Json, *, subresource: str = "") -> Json:
    """The entry for what the engine says in a part of an object: each of its fields, and those of its objects."""
    return _engines(api_version, part, _shape(fields), subresource)


def all_of_engine(api_version: str, spec: Json, status: Json) -> msgspec.Raw:
    """The entries of an object that only the engine writes, as JSON."""
    return _all_of_engine(api_version, _shape(spec), _shape(status))


def beside(shown: Json, others: Iterable[Json]) -> Json:
    """The fields of a status that none of the other entries owns, at least in part."""
    taken: set[str] = set()
    for entry in others:
        fields = entry.get("fieldsV1")
        held = cast("Json", fields).get("f:status") if isinstance(fields, dict) else None
        if isinstance(held, dict):
            taken.update(name.removeprefix("f:") for name in cast("Json", held))
    return {name: value for name, value in shown.items() if name not in taken}


_Shape = tuple[tuple[str, tuple[str, ...]], ...]


def _shape(fields: Json) -> _Shape:
    """The names of fields, each with those in it, where it is an object."""
    return tuple(
        [
            (name, tuple(cast("Json", value)) if isinstance(value, dict) else ())
            for name, value in fields.items()
        ]
    )


@lru_cache(maxsize=1_024)
def _engines(api_version: str, part: str, shape: _Shape, subresource: str) -> Json:
    """Objects of a kind have few shapes, so that lists of many are told fast; nobody changes what this gives."""
    return {
        "manager": ENGINE,
        "operation": "Update",
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": {f"f:{part}": {f"f:{name}": _written(below) for name, below in shape}},
        **({"subresource": subresource} if subresource else {}),
    }


@lru_cache(maxsize=1_024)
def _all_of_engine(api_version: str, spec: _Shape, status: _Shape) -> msgspec.Raw:
    found = [_engines(api_version, "spec", spec, "")]
    if status:
        found.append(_engines(api_version, STATUS, status, STATUS))
    return msgspec.Raw(_ENCODER.encode(found))


def _written(below: tuple[str, ...]) -> Json:
    return {_ITSELF: {}, **{f"f:{name}": {} for name in below}} if below else {}


def _fields(raw: msgspec.Raw) -> Json:
    try:
        return msgspec.json.decode(raw, type=Json)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
