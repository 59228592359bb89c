"""``metadata.managedFields``: the owners of an object's fields, and sets of field paths in its format (FieldsV1).

A path is a tuple of FieldsV1 steps: ``f:name`` is a field, ``k:{"name":"a"}`` the list item with these keys,
``v:"x"`` the set member with this value. A set is a frozenset of paths.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct, structs

from engine.kubeapi.schema.schemas import Fields, ListOf, Scalar
from engine.kubeapi.schema.types.parsing import resolved
from events.json_values import DECODING_ERRORS, Json, as_list, as_object, as_text, list_at, object_at
from events.kube_fields import SELF
from events.kube_objects import KubeObject

Path: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[Path]
FieldsV1: TypeAlias = dict[str, "FieldsV1"]
"""A set of paths in its JSON form: nested objects whose keys are the steps of the paths."""

NO_FIELDS: Final[FieldSet] = frozenset()
_DEPTH_MAX: Final = 128
_KINDS: Final = ("f:", "k:", "v:", "i:")


APPLY: Final = "Apply"
UPDATE: Final = "Update"
ANCIENT_CHANGES: Final = "ancient-changes"
_UPDATERS_MAX: Final = 10
"""Maximum number of Update entries per object; if there are more, the oldest are merged into one, as in Kubernetes."""

MANAGER_BYTES_MAX: Final = 128
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\xa0]")


class ManagedFieldsError(ValueError):
    """Malformed ``managedFields``, or a part of them; the message names the field and the reason."""


class Manager(Struct, frozen=True, kw_only=True, order=True):
    """A field manager: its name, operation, and subresource (empty for the object itself)."""

    name: str
    operation: Literal["Apply", "Update"]
    subresource: str = ""


class Owned(Struct, frozen=True, kw_only=True):
    """The fields of one manager, and the apiVersion and time (RFC 3339; empty if unknown) of its last write."""

    fields: FieldSet
    api_version: str
    time: str = ""


Owners = dict[Manager, Owned]


def field_step(name: str) -> str:
    """Return the FieldsV1 path step that names a field: ``f:name``."""
    return f"f:{name}"


def fields_v1(fields: FieldSet) -> FieldsV1:
    """Return the set as FieldsV1; equal sets give equal bytes, because paths are sorted."""
    root: FieldsV1 = {}
    # Sorting puts a path before its descendants, so `.` is set when the first descendant is added.
    for path in sorted(fields):
        at = root
        for index, step in enumerate(path[:-1], 1):
            below = at.setdefault(step, {})
            if not below and path[:index] in fields:
                below[SELF] = {}
            at = below
        at.setdefault(path[-1], {})
    return root


def field_set(value: object) -> FieldSet:
    """Return the set that a FieldsV1 value describes; raises ManagedFieldsError if it is malformed or too deep."""
    # Iterative and with a depth limit, because managedFields come from clients.
    result: set[Path] = set()
    waiting: list[tuple[object, Path]] = [(value, ())]
    while waiting:
        at, path = waiting.pop()
        fields = as_object(at)
        if fields is None or len(path) > _DEPTH_MAX:
            raise ManagedFieldsError(f"FieldsV1 has no object, or is too deep, at {shown_path(path[:3])}")
        if not fields and path:
            result.add(path)
        for step, below in fields.items():
            if step == SELF and not path:
                continue  # the object itself always exists, so it has no owner
            if step == SELF:
                result.add(path)
            elif step.startswith(_KINDS):
                waiting.append((below, (*path, step)))
            else:
                raise ManagedFieldsError(f"{step[:40]!r} is not a step of FieldsV1")
    return frozenset(result)


def with_parents(fields: FieldSet) -> FieldSet:
    """Return the set with all ancestors of its paths that are fields, not list items."""
    parents = {path[:size] for path in fields for size in range(1, len(path))}
    return fields | {parent for parent in parents if parent[-1].startswith("f:")}


def without_subtrees(fields: FieldSet, roots: Iterable[Path]) -> FieldSet:
    """Return the set without ``roots`` and all paths below them."""
    cut = frozenset(roots)
    if not cut:
        return fields
    sizes = {len(root) for root in cut}
    if len(sizes) == 1:
        (size,) = sizes
        return frozenset(path for path in fields if path[:size] not in cut)
    return frozenset(path for path in fields if not any(path[:size] in cut for size in sizes))


def path_order(path: Path) -> tuple[tuple[bool, str], ...]:
    """Sort key for paths in Kubernetes' order: at each level, the paths that end there come before longer ones."""
    return tuple((index < len(path) - 1, step) for index, step in enumerate(path))


def shown_path(path: Path) -> str:
    """Return the path as error messages show it: ``.spec.containers[name="web"].image``."""
    return "".join(_shown(step) for step in path)


def _shown(step: str) -> str:
    kind, text = step[:2], step[2:]
    match kind:
        case "f:":
            return f".{text}"
        case "k:":
            keys = object_at(_decoded_step(text))
            return "[" + ",".join(f"{name}={_plain(value)}" for name, value in sorted(keys.items())) + "]"
        case "v:":
            return f"[={_plain(_decoded_step(text))}]"
        case _:
            return f"[{text}]"


def _decoded_step(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except DECODING_ERRORS:
        return text


def _plain(value: object) -> str:
    return msgspec.json.encode(value).decode()


def step_of(item: object, schema: ListOf) -> str | None:
    """Return the step to an item of a set or a keyed list, or None if the item lacks its keys."""
    if schema.relation == "set":
        return None if isinstance(item, dict | list) else f"v:{_sorted_text(item)}"
    content = as_object(item)
    if content is None:
        return None
    fields = resolved(schema.item)
    keys: Json = {}
    for key in schema.keys:
        key_value = content.get(key)
        if key_value is None and isinstance(fields, Fields) and key in fields.fields:
            key_value = fields.fields[key].default
        if key_value is not None:
            keys[key] = key_value
        elif not isinstance(fields, Fields) or key not in fields.fields or not fields.fields[key].required:
            return None
        else:
            schema_of_key = fields.fields[key].schema
            is_text = isinstance(schema_of_key, Scalar) and schema_of_key.form not in {"int", "float", "bool"}
            keys[key] = "" if is_text else 0
    return f"k:{_sorted_text(keys)}"


def _sorted_text(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def read(value: KubeObject) -> Owners:
    """Parse the ``managedFields`` of an object; raises ManagedFieldsError. Entries of the same manager are merged."""
    result: Owners = {}
    listed = value.metadata.get("managedFields")
    entries = as_list(listed) if listed is not None else []
    if entries is None:
        raise ManagedFieldsError("managedFields is not a list")
    for index, item in enumerate(entries):
        entry = object_at(item)
        operation = entry.get("operation")
        if operation not in (APPLY, UPDATE):
            raise ManagedFieldsError(f"managedFields[{index}].operation: must be `Apply` or `Update`")
        if entry.get("fieldsType", "FieldsV1") != "FieldsV1":
            raise ManagedFieldsError(f"managedFields[{index}].fieldsType: must be `FieldsV1`")
        manager = Manager(
            name=as_text(entry.get("manager")),
            operation=APPLY if operation == APPLY else UPDATE,
            subresource=as_text(entry.get("subresource")),
        )
        try:
            fields = field_set(entry.get("fieldsV1", {}))
        except ManagedFieldsError as error:
            raise ManagedFieldsError(f"managedFields[{index}].fieldsV1: {error}") from None
        owned = Owned(
            fields=fields, api_version=as_text(entry.get("apiVersion")), time=as_text(entry.get("time"))
        )
        result[manager] = _joined(result[manager], owned) if manager in result else owned
    return result


def renamed(value: KubeObject, rename: Callable[[Path], Path]) -> KubeObject:
    """Return the object with each owned path replaced by ``rename(path)``; unreadable entries stay unchanged."""
    listed = as_list(value.metadata.get("managedFields"))
    if not listed:
        return value
    entries: list[Json] = []
    for item in listed:
        entry = object_at(item)
        try:
            fields = field_set(entry.get("fieldsV1", {}))
        except ManagedFieldsError:
            entries.append(entry)
            continue
        named = frozenset(rename(path) for path in fields)
        entries.append({**entry, "fieldsV1": fields_v1(named)})
    return replaced(value, entries)


def write(owners: Owners) -> list[Json]:
    """Return the entries of managers that own fields: Apply before Update, then by time and name."""
    entries = sorted(
        ((manager, owned) for manager, owned in _capped(owners).items() if owned.fields),
        key=lambda item: (
            item[0].operation,
            item[1].time,
            item[0].name,
            item[1].api_version,
            item[0].subresource,
        ),
    )
    return [
        entry(manager, owned.api_version, owned.time, fields_v1(owned.fields)) for manager, owned in entries
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


def unprintable(name: str) -> Iterator[str]:
    """Yield an error for each character that a manager name must not contain, in order."""
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
    # Merge only entries of updates. Each applier needs its own entry: the next apply removes the fields in it that are
    # no longer applied.
    for manager in updaters[: len(updaters) - _UPDATERS_MAX + 1]:
        owned = kept.pop(manager)
        bucket = Manager(name=ANCIENT_CHANGES, operation=UPDATE)
        kept[bucket] = _joined(kept[bucket], owned) if bucket in kept else owned
    return kept


def _joined(owned: Owned, other: Owned) -> Owned:
    return structs.replace(owned, fields=owned.fields | other.fields, time=max(owned.time, other.time))


def entries(value: KubeObject) -> list[Json]:
    """Return the entries of ``metadata.managedFields`` that are objects."""
    listed = list_at(value.metadata, "managedFields")
    return [entry for item in listed if (entry := as_object(item)) is not None]


def is_of_status(entry: Json) -> bool:
    """Return whether an entry is about the status."""
    return entry.get("subresource") == "status"


def replaced(value: KubeObject, entries: Iterable[Json] | None) -> KubeObject:
    """Return the object with these entries, or without ``managedFields`` if there are none."""
    listed = list(entries or ())
    plain = value.without_metadata("managedFields")
    return plain.with_metadata({"managedFields": listed}) if listed else plain
