"""Server-side apply, and field ownership after other writes.

An applier owns the fields that it applies; a field that it no longer applies is removed unless another
manager owns it. Changing a field of another manager is a conflict; a forced apply takes the field over. Any
other write takes over the fields that it changes. The rules are those of Kubernetes' structured merge within
one version.
"""

import itertools
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Final

from msgspec import Struct, structs

from engine.kubeapi.patching import managed_fields
from engine.kubeapi.patching.apply_merge import merged, without
from engine.kubeapi.patching.field_paths import CONTAINER, OWNED_ENTRY, check, content_by_path, owned, same
from engine.kubeapi.patching.managed_fields import (
    NO_FIELDS,
    FieldSet,
    FieldsV1,
    Manager,
    Owned,
    Owners,
    Path,
    step_of,
)
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.schema.schemas import ListOf, Schema
from engine.kubeapi.schema.types.parsing import blank, resolved, schema_below
from events.json_values import Json, as_list, as_object, is_container, object_at
from events.kube_fields import SELF
from events.kube_objects import KubeObject

_PATHS_CHARS_MAX: Final = 2**20
BEFORE_FIRST_APPLY: Final = Manager(name="before-first-apply", operation="Update")
_MAINTAINED: Final = frozenset({"apiVersion", "kind", "metadata"})
_MAINTAINED_METADATA: Final = frozenset(
    {
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_UNOWNED: Final[FieldSet] = frozenset((f"f:{name}",) for name in _MAINTAINED) | {
    ("f:metadata", f"f:{name}") for name in _MAINTAINED_METADATA
}
"""Fields that the server maintains; no manager owns them."""


class Write(Struct, frozen=True, kw_only=True):
    """One write: its manager, apiVersion, time (RFC 3339), and the paths below which it must not change anything."""

    manager: Manager
    api_version: str
    time: str
    untouched: tuple[Path, ...] = ()


class Conflict(Struct, frozen=True, kw_only=True):
    """A field that an apply would change although another manager owns it."""

    path: Path
    manager: Manager
    owned: Owned

    @property
    def owner(self) -> str:
        """The owner in Kubernetes' wording: name, subresource, and the apiVersion of an update."""
        text = f'"{self.manager.name}"'
        if self.manager.subresource:
            text += f' with subresource "{self.manager.subresource}"'
        if self.manager.operation == managed_fields.UPDATE:
            text += f" using {self.owned.api_version}"
        return text


class ApplyConflictError(Exception):
    """An apply that would change fields of other managers; ``conflicts`` are sorted by manager, then path.

    The list is cut when its paths exceed 1 MiB: thousands of paths can contain a field name of hundreds of kilobytes.
    """

    def __init__(self, conflicts: tuple[Conflict, ...]) -> None:
        sizes = itertools.accumulate(sum(map(len, conflict.path)) for conflict in conflicts)
        count = sum(1 for _ in itertools.takewhile(lambda size: size <= _PATHS_CHARS_MAX, sizes))
        self.conflicts = conflicts[: count + 1]
        super().__init__(_conflict_text(self.conflicts, len(conflicts)))


class ApplyError(ValueError):
    """An object that cannot be applied: it does not conform to its type, or contains managedFields."""


class _Changes(Struct, frozen=True):
    """Difference of two objects as paths; ``modified`` has only leaves."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet


def untouched(resource: Resource, subresource: str = "") -> tuple[Path, ...]:
    """Return the paths whose fields a write to an object, or to one of its subresources, must not change."""
    if subresource == "status":
        return (("f:spec",), ("f:metadata",))
    return (("f:status",),) if resource.subresource("status") else ()


def applied(
    live: KubeObject | None,
    applied_object: KubeObject,
    schema: Schema,
    write: Write,
    *,
    force: bool = False,
    stored: Callable[[Json], Json] = lambda merged: merged,
) -> KubeObject:
    """Apply an object to ``live`` and return the result; ``live`` itself if nothing changes.

    ``stored`` returns a merged object as it is stored, for example without empty values. Raises ApplyConflictError
    unless forced; ApplyError if the object cannot be applied; ManagedFieldsError if the managedFields of ``live`` are
    malformed.
    """
    if applied_object.metadata.get("managedFields"):
        raise ApplyError("metadata.managedFields must be nil")
    applied_fields = applied_object.document
    for fault in check(applied_fields, schema):
        raise ApplyError(str(fault))
    current: Json = {} if live is None else managed_fields.replaced(live, None).document
    owners = {} if live is None else managed_fields.read(live)
    if live is not None and not owners:
        fields = managed_fields.without_subtrees(owned(current, schema), write.untouched) - _UNOWNED
        # Fields written before the first apply get an owner, so that the apply conflicts with them instead of
        # silently taking them over.
        before_it = structs.replace(BEFORE_FIRST_APPLY, subresource=write.manager.subresource)
        owners = {before_it: Owned(fields=fields, api_version=write.api_version, time=write.time)}
    before = owners.get(write.manager)
    claimed = managed_fields.without_subtrees(owned(applied_fields, schema), write.untouched) - _UNOWNED
    now = Owned(fields=claimed, api_version=write.api_version, time=write.time)
    after = {**owners, write.manager: now}
    result = object_at(merged(current, _without_untouched(applied_fields, write), schema))
    if before is not None:
        result = _without_unowned(result, schema, before.fields, after)
    changes = _changes(content_by_path(current, schema), content_by_path(result, schema), write)
    after = _owners_after_write(after, write.manager, changes, force=force)
    # Drop empty values only now: until here, an applied null or empty value has an owner, and replaces the value of
    # another manager.
    result = stored(result)
    if live is not None and same(current, result):
        before_it, after_it = (
            {name: owned.fields for name, owned in part.items()} for part in (owners, after)
        )
        if before is not None and before_it == after_it:
            return live  # callers recognise an apply without effect by identity
        # If only ownership changes, keep the time of the manager's last apply: no other field has changed.
        unchanged = structs.replace(after[write.manager], time=before.time if before is not None else "")
        after = {**after, write.manager: unchanged}
    return managed_fields.replaced(KubeObject(result), managed_fields.write(after))


def updated(live: KubeObject | None, new: KubeObject, schema: Schema, write: Write) -> KubeObject:
    """Return ``new`` with the managedFields of ``owners_after_update``, which may raise ManagedFieldsError.

    ``live`` is the stored object, if any.
    """
    return managed_fields.replaced(new, owners_after_update(live, new, schema, write))


def owners_after_update(live: KubeObject | None, new: KubeObject, schema: Schema, write: Write) -> list[Json]:
    """Return the managedFields of ``new`` after an update: the writer owns the fields that it changed.

    Valid managedFields in ``new`` replace the stored ones, so clients can transfer ownership; an empty list,
    or one empty entry, removes all owners. A stored object without any owner gets none until its first apply.
    Raises ManagedFieldsError if stored managedFields cannot be read.
    """
    carried = new.metadata.get("managedFields")
    if live is None and carried is None:
        return _first_owner(new, schema, write)
    if carried in ([], [{}]):
        return []
    known = {} if live is None else managed_fields.read(live)
    owners = _carried(new) or known
    if not owners and live is not None and live.uid:
        return []
    earlier = blank(schema) if live is None else managed_fields.replaced(live, None).document
    before_it = content_by_path(earlier, schema)
    after_it = content_by_path(managed_fields.replaced(new, None).document, schema)
    changes = _changes(before_it, after_it, write)
    owners = _owners_after_write(owners, write.manager, changes, force=True)
    touched = (changes.added | changes.modified) - _UNOWNED
    before = owners.get(write.manager)
    kept = before.fields - changes.removed if before else NO_FIELDS
    if touched:
        owners[write.manager] = Owned(fields=kept | touched, api_version=write.api_version, time=write.time)
    elif before is not None:
        owners[write.manager] = structs.replace(before, fields=kept)
    return managed_fields.write(owners)


def _first_owner(value: KubeObject, schema: Schema, write: Write) -> list[Json]:
    """Return the managedFields of a new object, whose writer owns all its fields.

    This is faster than comparing the paths of two objects, as for an update.
    """
    metadata = value.metadata
    written = {
        name: item
        for name, item in value.document.items()
        if name not in _MAINTAINED and (f"f:{name}",) not in write.untouched
    }
    written["metadata"] = {name: item for name, item in metadata.items() if name not in _MAINTAINED_METADATA}
    fields = of_first_write(written, schema)
    of_metadata = fields.pop("f:metadata", {})
    of_metadata.pop(SELF, None)
    if of_metadata:
        fields["f:metadata"] = of_metadata
    return [managed_fields.entry(write.manager, write.api_version, write.time, fields)] if fields else []


def of_first_write(value: Json, schema: Schema) -> FieldsV1:
    """Return the fields that the first writer of an object owns, as FieldsV1.

    The writer owns the paths whose values in ``content_by_path`` differ from those of the object before the write,
    ``blank``.
    """
    result: FieldsV1 = {}
    _add_beyond(result, value, resolved(schema), blank(schema))
    return result


def _add_beyond(owned: FieldsV1, document: Json, schema: Schema, before: Json) -> None:
    """Add the fields of ``document`` to ``owned``, except those with the same value in ``before``.

    ``before`` is the part at the same path of ``blank``, the object of a type before its first write.
    """
    for name in sorted(document):
        item, step = document[name], f"f:{name}"
        own: FieldsV1 = {}
        if name not in before:
            owned[step] = own
            if is_container(item):
                _add(own, item, schema_below(schema, name))
            continue
        below = schema_below(schema, name)
        was, is_changed = as_object(before[name]), False
        if was and not below.atomic:
            _add_beyond(own, as_object(item) or {}, below, was)
        else:
            _add(own, item, below)
            # ``blank`` already has this field, so the writer owns the content but not the field itself.
            # An empty list that is merged by item has no content to own.
            own.pop(SELF, None)
            is_merged = isinstance(below, ListOf) and not below.atomic
            is_changed = before[name] != item and not (is_merged and item == [])
        if own or is_changed:
            owned[step] = own


def _add(owned: FieldsV1, value: object, schema: Schema) -> None:
    """Add all paths inside ``value`` to ``owned``, the FieldsV1 of its field or list item; a leaf adds nothing."""
    if not value or schema.atomic:
        return
    fields = as_object(value)
    if fields is not None:
        owned[SELF] = {}
        for name in sorted(fields):
            own: FieldsV1 = {}
            owned[f"f:{name}"] = own
            if is_container(fields[name]):
                _add(own, fields[name], schema_below(schema, name))
    elif isinstance(schema, ListOf):
        items = as_list(value) or []
        steps = [step_of(item, schema) for item in items]
        if not items or None in steps:
            return
        owned[SELF] = {}
        below = resolved(schema.item)
        for step, item in sorted(zip(steps, items, strict=True), key=itemgetter(0)):
            own = owned.setdefault(str(step), {})
            if schema.relation == "map":
                _add(own, item, below)


def _carried(value: KubeObject) -> Owners:
    try:
        return managed_fields.read(value)
    except managed_fields.ManagedFieldsError:
        return {}


def _without_untouched(applied: Json, write: Write) -> Json:
    """Return the object without the fields below ``write.untouched``, which the endpoint must not change."""
    result = applied
    for root in write.untouched:
        result = _cut(result, [step.removeprefix("f:") for step in root])
    return result


def _cut(value: Json, names: list[str]) -> Json:
    name, *below = names
    if name not in value:
        return value
    fields = as_object(value[name])
    if below and fields is not None:
        return {**value, name: _cut(fields, below)}
    return {other: item for other, item in value.items() if other != name} if not below else value


def _without_unowned(result: Json, schema: Schema, before: FieldSet, owners: Owners) -> Json:
    """Return the object without the fields that the applier owned before and that have no owner now.

    Two passes, as in Kubernetes: a list emptied by the first is removed by the second.
    """
    former = managed_fields.with_parents(before)
    everybody: FieldSet = NO_FIELDS.union(*(owned.fields for owned in owners.values()))
    removed = former - managed_fields.with_parents(everybody) - _UNOWNED
    if not removed:
        return result
    left = managed_fields.with_parents(owned(without(result, schema, removed), schema))
    removed = (managed_fields.with_parents(owned(result, schema)) - left) & former
    return object_at(without(result, schema, removed))


def _changes(first: Mapping[Path, object], second: Mapping[Path, object], write: Write) -> _Changes:
    modified = (path for path, value in second.items() if path in first and _is_changed(first[path], value))
    paths = (second.keys() - first.keys(), modified, first.keys() - second.keys())
    return _Changes(*(managed_fields.without_subtrees(frozenset(part), write.untouched) for part in paths))


def _is_changed(old: object, new: object) -> bool:
    """Whether the value of a leaf changed; False for containers, because their parts are compared instead."""
    return not (
        old is OWNED_ENTRY or old is CONTAINER or new is OWNED_ENTRY or new is CONTAINER or same(old, new)
    )


def _owners_after_write(owners: Owners, writer: Manager, changes: _Changes, *, force: bool) -> Owners:
    """Return the owners after a write of ``writer``; raises ApplyConflictError for fields of others unless forced."""
    touched = changes.added | changes.modified
    conflicts = tuple(
        Conflict(path=path, manager=manager, owned=owned)
        for manager, owned in sorted(owners.items(), key=lambda item: item[0])
        if manager != writer
        for path in sorted(owned.fields & touched, key=managed_fields.path_order)
    )
    if conflicts and not force:
        raise ApplyConflictError(conflicts)
    lost = touched | changes.removed
    return {
        manager: owned if manager == writer else structs.replace(owned, fields=owned.fields - lost)
        for manager, owned in owners.items()
    }


def _conflict_text(conflicts: tuple[Conflict, ...], count: int) -> str:
    if count == 1:
        only = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {only.owner}: {managed_fields.shown_path(only.path)}"
    paths: dict[str, list[str]] = {}
    for conflict in conflicts:
        paths.setdefault(conflict.owner, []).append(f"- {managed_fields.shown_path(conflict.path)}")
    listed = "\n".join(
        f"conflicts with {owner}:\n" + "\n".join(texts) for owner, texts in sorted(paths.items())
    )
    return f"Apply failed with {count} conflicts: {listed}"
