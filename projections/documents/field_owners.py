"""Field ownership as in ``metadata.managedFields``: fields written by clients, and fields that the engine derives.

The engine's fields follow from the log and no write request sets them. Their entry is computed from the
rendered fields, under the manager ``ENGINE`` and without a time; it is never stored.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, cast

import msgspec

from events import shapes
from events.json_values import DECODING_ERRORS, Json, canonical_json, decoded, object_at
from events.kube_fields import SELF, ManagedFieldsEntry

ENGINE: Final = "reballast"
"""Name of the manager of all fields that the engine derives."""

STATUS: Final = "status"
_Owners = tuple[shapes.FieldsOwner, ...]


def encode(owners: _Owners) -> bytes:
    """Return the owners in stored form; empty bytes if there are none."""
    return canonical_json(owners) if owners else b""


def decode(raw: bytes) -> _Owners:
    """Return the stored owners; empty if they cannot be decoded."""
    if not raw:
        return ()
    try:
        return msgspec.json.decode(raw, type=_Owners)
    except DECODING_ERRORS:
        return ()


def entries(owners: Iterable[shapes.FieldsOwner]) -> list[ManagedFieldsEntry]:
    """Return the ``managedFields`` entries of clients."""
    return [_entry(owner) for owner in owners]


def _entry(owner: shapes.FieldsOwner) -> ManagedFieldsEntry:
    entry: ManagedFieldsEntry = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": owner.api_version,
    }
    if owner.time:
        entry["time"] = owner.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = decoded(owner.fields_v1)
    if owner.subresource:
        entry["subresource"] = owner.subresource
    return entry


def of_entries(values: Sequence[object]) -> _Owners:
    """Return the owners in ``managedFields`` entries; the engine's entry is skipped, since it is never stored."""
    owners: list[shapes.FieldsOwner] = []
    for item in values:
        entry = cast("Json", item) if isinstance(item, dict) else {}
        fields = entry.get("fieldsV1")
        if not isinstance(fields, dict) or is_engine_entry(entry):
            continue
        names = ("manager", "operation", "apiVersion", "time", "subresource")
        manager, operation, api_version, time, subresource = (str(entry.get(name) or "") for name in names)
        owners.append(
            shapes.FieldsOwner(
                manager=manager,
                operation=operation,
                api_version=api_version,
                time=time,
                subresource=subresource,
                fields_v1=msgspec.Raw(canonical_json(fields)),
            )
        )
    return tuple(owners)


def is_engine_entry(entry: Mapping[str, object]) -> bool:
    """Return whether an entry is the engine's own."""
    return (entry.get("manager"), entry.get("operation")) == (ENGINE, "Update")


def of_status(api_version: str, status: Mapping[str, object]) -> ManagedFieldsEntry:
    """Return the engine's entry for the fields of a status, to a depth of two levels."""
    return _engines(api_version, STATUS, _shape(status), STATUS)


def engine_managed_fields(
    api_version: str, spec: Mapping[str, object], status: Mapping[str, object]
) -> msgspec.Raw:
    """Return the ``managedFields`` entries of an object that only the engine writes, as JSON."""
    return _engine_managed_fields(api_version, _shape(spec), _shape(status))


def status_fields(owners: Iterable[ManagedFieldsEntry]) -> set[str]:
    """Return the top-level status fields of which these entries own all or a part."""
    return {
        name.removeprefix("f:")
        for entry in owners
        for name in object_at(entry.get("fieldsV1"), f"f:{STATUS}")
    }


_Shape = tuple[tuple[str, tuple[str, ...]], ...]


def _shape(fields: Mapping[str, object]) -> _Shape:
    """Return the field names, each with the names of its own fields if it is an object."""
    return tuple(
        [
            (name, tuple(cast("Json", value)) if isinstance(value, dict) else ())
            for name, value in fields.items()
        ]
    )


@lru_cache(maxsize=1_024)
def _engines(api_version: str, part: str, shape: _Shape, subresource: str) -> ManagedFieldsEntry:
    """Return the engine's entry for fields with this shape (see ``_shape``).

    Cached, because objects of a kind have few shapes and lists render many objects. Callers must not modify
    the result.
    """
    entry: ManagedFieldsEntry = {
        "manager": ENGINE,
        "operation": "Update",
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": {f"f:{part}": {f"f:{name}": _written(below) for name, below in shape}},
    }
    if subresource:
        entry["subresource"] = subresource
    return entry


@lru_cache(maxsize=1_024)
def _engine_managed_fields(api_version: str, spec: _Shape, status: _Shape) -> msgspec.Raw:
    managed = [_engines(api_version, "spec", spec, "")]
    if status:
        managed.append(_engines(api_version, STATUS, status, STATUS))
    return msgspec.Raw(canonical_json(managed))


def _written(below: tuple[str, ...]) -> Json:
    return {SELF: {}, **{f"f:{name}": {} for name in below}} if below else {}
