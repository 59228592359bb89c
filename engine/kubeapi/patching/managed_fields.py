"""``metadata.managedFields``: read and write the owners of an object's fields."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct, structs

from engine.kubeapi.patching import field_sets
from engine.kubeapi.patching.field_sets import FieldSet, FieldsV1, Path
from events.json_values import Json, as_list, as_object, list_at, object_at
from events.kube_objects import KubeObject

APPLY: Final = "Apply"
UPDATE: Final = "Update"
ANCIENT: Final = "ancient-changes"
_UPDATERS_MAX: Final = 10
"""Update entries kept per object; the oldest beyond this are merged into one entry, as in Kubernetes."""

MANAGER_BYTES_MAX: Final = 128
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e\u00a1-\U0010ffff]")


class ManagedFieldsError(ValueError):
    """Malformed ``managedFields``; the message names the entry and the reason."""


class Manager(Struct, frozen=True, kw_only=True, order=True):
    """A field manager: its name, operation, and subresource (empty for the object itself)."""

    name: str
    operation: Literal["Apply", "Update"]
    subresource: str = ""


class Owned(Struct, frozen=True, kw_only=True):
    """The fields of one manager, the apiVersion it wrote in, and the last time (RFC 3339; empty if unknown)."""

    fields: FieldSet
    api_version: str
    time: str = ""


Owners = dict[Manager, Owned]


def read(value: KubeObject) -> Owners:
    """Parse the ``managedFields`` of an object; raises ManagedFieldsError. Entries of the same manager are merged."""
    result: Owners = {}
    listed = value.metadata.get("managedFields")
    entries = as_list(listed) if listed is not None else []
    if entries is None:
        raise ManagedFieldsError("managedFields is no list")
    for index, item in enumerate(entries):
        entry = object_at(item)
        operation = entry.get("operation")
        if operation not in (APPLY, UPDATE):
            raise ManagedFieldsError(f"managedFields[{index}].operation: must be `Apply` or `Update`")
        if entry.get("fieldsType", "FieldsV1") != "FieldsV1":
            raise ManagedFieldsError(f"managedFields[{index}].fieldsType: must be `FieldsV1`")
        manager = Manager(
            name=_text(entry, "manager"),
            operation=APPLY if operation == APPLY else UPDATE,
            subresource=_text(entry, "subresource"),
        )
        try:
            fields = field_sets.decode(entry.get("fieldsV1", {}))
        except field_sets.FieldSetError as error:
            raise ManagedFieldsError(f"managedFields[{index}].fieldsV1: {error}") from None
        owned = Owned(fields=fields, api_version=_text(entry, "apiVersion"), time=_text(entry, "time"))
        result[manager] = _joined(result[manager], owned) if manager in result else owned
    return result


def renamed(value: KubeObject, rename: Callable[[Path], Path]) -> KubeObject:
    """Return the object with each owned path replaced by ``rename(path)``; unreadable entries stay unchanged."""
    listed = as_list(value.metadata.get("managedFields"))
    if not listed:
        return value
    entries: list[Json] = []
    for each in listed:
        entry = object_at(each)
        try:
            fields = field_sets.decode(entry.get("fieldsV1", {}))
        except field_sets.FieldSetError:
            entries.append(entry)
            continue
        named = frozenset(rename(path) for path in fields)
        entries.append({**entry, "fieldsV1": field_sets.encode(named)})
    return replaced(value, entries)


def write(owners: Owners) -> list[Json]:
    """Return the entries: Apply before Update, then by time and name. Managers without fields are left out."""
    entries = sorted(
        ((manager, owned) for manager, owned in _capped(owners).items() if owned.fields),
        key=lambda each: (
            each[0].operation,
            each[1].time,
            each[0].name,
            each[1].api_version,
            each[0].subresource,
        ),
    )
    return [
        entry(manager, owned.api_version, owned.time, field_sets.encode(owned.fields))
        for manager, owned in entries
    ]


def entry(manager: Manager, api_version: str, time: str, fields: FieldsV1) -> Json:
    """Return the entry of a manager that owns these fields."""
    written: Json = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        "subresource": manager.subresource,
    }
    return {name: value for name, value in written.items() if value != ""}


def is_reset(value: object) -> bool:
    """Whether the value asks to discard all ownership: an empty list, or a list of one empty entry."""
    return value in ([], [{}])


def is_name_too_long(name: str) -> bool:
    return len(name.encode()) > MANAGER_BYTES_MAX


def unprintable(name: str) -> Iterator[str]:
    """Yield the reason for each character that a manager name may not have, in order."""
    for result in _UNPRINTABLE.finditer(name):
        offset = result.start()
        yield f"should only contain printable characters, not U+{ord(result[0]):04X} (at position {offset})"


def name_of_agent(agent: str) -> str:
    """Return the manager name of a client that sends none: the valid characters of its user agent up to the slash."""
    name = _UNPRINTABLE.sub("", agent.partition("/")[0].strip())
    return name.encode()[:MANAGER_BYTES_MAX].decode(errors="ignore")


def _capped(owners: Owners) -> Owners:
    updaters = [manager for manager in owners if manager.operation == UPDATE and owners[manager].fields]
    if len(updaters) <= _UPDATERS_MAX:
        return owners
    updaters.sort(key=lambda manager: (owners[manager].time, manager))
    kept = dict(owners)
    # Only update entries are merged; an applier needs its own entry to find the fields that it gives up.
    for manager in updaters[: len(updaters) - _UPDATERS_MAX + 1]:
        owned = kept.pop(manager)
        bucket = Manager(name=ANCIENT, operation=UPDATE)
        kept[bucket] = _joined(kept[bucket], owned) if bucket in kept else owned
    return kept


def _joined(one: Owned, other: Owned) -> Owned:
    return structs.replace(one, fields=one.fields | other.fields, time=max(one.time, other.time))


def _text(entry: Json, name: str) -> str:
    value = entry.get(name, "")
    return value if isinstance(value, str) else ""


def entries(value: KubeObject) -> list[Json]:
    """Return the entries of ``metadata.managedFields`` that are objects."""
    listed = list_at(value.metadata, "managedFields")
    return [entry for each in listed if (entry := as_object(each)) is not None]


def replaced(value: KubeObject, entries: Iterable[Json] | None) -> KubeObject:
    """Return the object with these entries, or without ``managedFields`` if there are none."""
    metadata = dict(value.metadata)
    metadata.pop("managedFields", None)
    listed = list(entries or ())
    if listed:
        metadata["managedFields"] = listed
    return value.with_fields({"metadata": metadata})
