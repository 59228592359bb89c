"""Merge of server-side apply: add the applied fields to the live object, and remove fields from it.

``server_side_apply`` decides about ownership.
"""

from collections.abc import Mapping
from typing import Final

from engine.kubeapi.patching import managed_fields
from engine.kubeapi.patching.managed_fields import FieldSet, Path, step_of
from engine.kubeapi.schema.schemas import ListOf, Schema
from engine.kubeapi.schema.types.parsing import resolved, schema_below
from events.json_values import Json, as_list, as_object, is_container

_GONE: Final = object()


def merged(live: object, applied: object, schema: Schema) -> object:
    """Return ``applied`` merged over ``live``: objects by field, lists by item, everything else replaced.

    A null leaves an object or list unchanged, unless it is atomic. The arguments are not changed; the result shares
    values with both.
    """
    schema = resolved(schema)
    old, new = as_object(live), as_object(applied)
    if schema.atomic:
        return applied
    if applied is None and is_container(live):
        return live
    if old is not None and new is not None:
        result = dict(old)
        for name, value in new.items():
            result[name] = merged(old[name], value, schema_below(schema, name)) if name in old else value
        return result
    items, applied_items = as_list(live), as_list(applied)
    if items is None or applied_items is None or not isinstance(schema, ListOf):
        return applied
    return _merged_lists(items, applied_items, schema)


def without(value: object, schema: Schema, fields: FieldSet) -> object:
    """Return the object without the paths in ``fields`` and all below them; containers that this empties stay."""
    prefixes = frozenset(path[:size] for path in fields for size in range(len(path)))
    result = _pruned(value, resolved(schema), (), fields, prefixes)
    return {} if result is _GONE else result


def _merged_lists(live: list[object], applied: list[object], schema: ListOf) -> object:
    """Merge two lists by item key; return ``applied`` if an item of either list has no key.

    Applied items keep their order. Items that only ``live`` has keep their position among the items that both lists
    have, unless the two lists have these common items in different orders.
    """
    old = [step_of(item, schema) for item in live]
    new = [step_of(item, schema) for item in applied]
    if None in old or None in new:
        return applied
    live_items: dict[str | None, object] = {}
    for step, item in zip(old, live, strict=True):
        live_items.setdefault(step, item)
    applied_items: Mapping[str | None, object] = dict(zip(new, applied, strict=True))
    order = _order(old, new)
    result: list[object] = []
    for step, index in order:
        if step not in applied_items:
            result.append(live[index])
        elif step in live_items:
            result.append(merged(live_items[step], applied_items[step], schema.item))
        else:
            result.append(applied_items[step])
    return result


def _order(old: list[str | None], new: list[str | None]) -> list[tuple[str | None, int]]:
    """Return the item keys (steps) of the merged list in order, each with an index.

    For an item that only the old list has, this is its index in that list; for an item of the new list it is -1.
    """
    old_steps, new_steps = set(old), set(new)
    shared = [step for step in new if step in old_steps]
    result: list[tuple[str | None, int]] = []
    left, right, done = 0, 0, 0
    while left < len(old) or right < len(new):
        step = old[left] if left < len(old) else None
        expected = shared[done] if done < len(shared) else None
        if step is not None and step not in new_steps:
            result.append((step, left))
            left += 1
        elif step is not None and step != expected:
            # The new list has this item too; it is added at its position in the new list.
            left += 1
        else:
            added = new[right]
            result.append((added, -1))
            right += 1
            if added == expected:
                done += 1
            if added == step:
                left += 1
    return result


def _pruned(value: object, schema: Schema, path: Path, fields: FieldSet, prefixes: frozenset[Path]) -> object:
    if path in fields:
        return _GONE
    # Subtrees without removed paths are shared with the input, not copied.
    if path not in prefixes:
        return value
    content, items = as_object(value), as_list(value)
    if content is not None:
        kept: Json = {}
        for name, item in content.items():
            below = (*path, managed_fields.field_step(name))
            left = _pruned(item, schema_below(schema, name), below, fields, prefixes)
            if left is not _GONE:
                kept[name] = left
        return kept
    if items is None or not isinstance(schema, ListOf) or schema.relation == "atomic":
        return value
    item_schema = resolved(schema.item)
    remaining: list[object] = []
    for item in items:
        step = step_of(item, schema)
        left = item if step is None else _pruned(item, item_schema, (*path, step), fields, prefixes)
        if left is not _GONE:
            remaining.append(left)
    return remaining
