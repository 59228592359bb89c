"""``metadata.managedFields``: who owns which fields, as objects carry it."""

import re
from collections.abc import Callable, Iterable
from typing import Final, Literal

from msgspec import Struct, structs

from engine.kube import field_sets
from engine.kube.field_sets import FieldSet, Path
from engine.kube.schemas import Json, as_list, as_object

APPLY: Final = "Apply"
UPDATE: Final = "Update"
ANCIENT: Final = "ancient-changes"
_UPDATERS_MAX: Final = 10
"""More managers that only update than this share one entry, as in Kubernetes."""

_MANAGER_CHARS_MAX: Final = 128
_WORD: Final = re.compile(r"[\x20-\x7e\u00a0-\U0010ffff]*")


class ManagedFieldsError(ValueError):
    """Entries that can't be read; the words say which and why."""


class Manager(Struct, frozen=True, kw_only=True, order=True):
    """Who writes: a name, how, and through which subresource (empty for the object itself)."""

    name: str
    operation: Literal["Apply", "Update"]
    subresource: str = ""


class Owned(Struct, frozen=True, kw_only=True):
    """What a manager owns, in which version it wrote, and when last (RFC 3339; empty where nobody knows)."""

    fields: FieldSet
    api_version: str
    time: str = ""


Owners = dict[Manager, Owned]


def read(value: object) -> Owners:
    """The owners that ``managedFields`` names; raises ManagedFieldsError."""
    found: Owners = {}
    entries = as_list(value) if value is not None else []
    if entries is None:
        raise ManagedFieldsError("managedFields is no list")
    for place, item in enumerate(entries):
        entry = as_object(item) or {}
        operation = entry.get("operation")
        if operation not in (APPLY, UPDATE):
            raise ManagedFieldsError(f"managedFields[{place}].operation: must be `Apply` or `Update`")
        if entry.get("fieldsType", "FieldsV1") != "FieldsV1":
            raise ManagedFieldsError(f"managedFields[{place}].fieldsType: must be `FieldsV1`")
        manager = Manager(
            name=_text(entry, "manager"),
            operation=APPLY if operation == APPLY else UPDATE,
            subresource=_text(entry, "subresource"),
        )
        try:
            fields = field_sets.decode(entry.get("fieldsV1", {}))
        except field_sets.FieldSetError as error:
            raise ManagedFieldsError(f"managedFields[{place}].fieldsV1: {error}") from None
        owned = Owned(fields=fields, api_version=_text(entry, "apiVersion"), time=_text(entry, "time"))
        found[manager] = _joined(found[manager], owned) if manager in found else owned
    return found


def renamed(value: Json, rename: Callable[[Path], Path]) -> Json:
    """The object whose owners own the fields of these other names; what can't be read stays as it is."""
    listed = as_list(in_object(value))
    if not listed:
        return value
    entries: list[Json] = []
    for each in listed:
        entry = as_object(each) or {}
        try:
            fields = field_sets.decode(entry.get("fieldsV1", {}))
        except field_sets.FieldSetError:
            entries.append(entry)
            continue
        named = frozenset(rename(path) for path in fields)
        entries.append({**entry, "fieldsV1": field_sets.encode(named)})
    return replaced(value, entries)


def write(owners: Owners) -> list[Json]:
    """The entries for an object: appliers first, then by time and name. Those who own nothing have none."""
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
    return [_entry(manager, owned) for manager, owned in entries]


def is_reset(value: object) -> bool:
    """Whether somebody asks to forget all ownership: an empty list, or one of an empty entry."""
    return value in ([], [{}])


def name_fault(name: str) -> str:
    """Why this can't be the name of a manager; empty where it can."""
    if len(name) > _MANAGER_CHARS_MAX:
        return f"may not be more than {_MANAGER_CHARS_MAX} bytes"
    return "" if _WORD.fullmatch(name) else "should only contain printable characters"


def _entry(manager: Manager, owned: Owned) -> Json:
    entry: Json = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": field_sets.encode(owned.fields),
        "subresource": manager.subresource,
    }
    return {name: value for name, value in entry.items() if value != ""}


def _capped(owners: Owners) -> Owners:
    updaters = [manager for manager in owners if manager.operation == UPDATE and owners[manager].fields]
    if len(updaters) <= _UPDATERS_MAX:
        return owners
    updaters.sort(key=lambda manager: (owners[manager].time, manager))
    kept = dict(owners)
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


def in_object(value: Json) -> object:
    """The entries that an object carries."""
    return (as_object(value.get("metadata")) or {}).get("managedFields")


def replaced(value: Json, entries: Iterable[Json] | None) -> Json:
    """The object with these entries, or with none."""
    metadata = dict(as_object(value.get("metadata")) or {})
    metadata.pop("managedFields", None)
    listed = list(entries or ())
    if listed:
        metadata["managedFields"] = listed
    return {**value, "metadata": metadata}
