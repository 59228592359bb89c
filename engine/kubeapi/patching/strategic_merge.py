"""Strategic merge patches: merge patches that merge lists of built-in kinds by item.

The type tables name the merge key of each list. Directives: ``$patch`` (replace, delete),
``$setElementOrder/list``, ``$deleteFromPrimitiveList/list``, ``$retainKeys``. Custom kinds and kinds of the Karmada
groups do not support strategic merge patches; clients send merge patches instead.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from engine.kubeapi.schema.schemas import Fields, ListOf, Schema
from engine.kubeapi.schema.types.parsing import resolved, schema_below
from engine.kubeapi.values import go_texts
from events.json_values import Json, as_list, as_object, object_at

_PATCH: Final = "$patch"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"
_RETAIN: Final = "$retainKeys"
_SCALARS: Final = "*"


class StrategicMergeError(ValueError):
    """An invalid patch: a malformed directive, or a list item without its merge key."""


def takes(schema: Schema) -> bool:
    """Whether objects of this type support strategic merge patches."""
    fields = resolved(schema)
    return isinstance(fields, Fields) and bool(fields.wire)


def patched(live: Json, patch: Json, schema: Schema) -> Json:
    """Return the patched object; the arguments are not changed. Raises StrategicMergeError."""
    return _objects(live, patch, resolved(schema))


def _objects(live: Json, patch: Json, schema: Schema) -> Json:
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {name: _plain(item) for name, item in patch.items() if name != _PATCH}
    if directive == "delete":
        return {}
    if directive is not None:
        raise StrategicMergeError(f"unknown patch type found: {directive}")
    result = _retained(live, patch)
    ordered: set[str] = set()
    for name, order in patch.items():
        if name.startswith(_ORDER):
            field = name.removeprefix(_ORDER)
            ordered.add(field)
            _set_order(result, patch, field, order, schema)
    for name, item in patch.items():
        if name.startswith(_DELETE):
            _delete(result, name.removeprefix(_DELETE), item)
        elif not name.startswith("$") and name not in ordered:
            _field(result, name, item, schema)
    return result


def _field(merged: Json, name: str, item: object, schema: Schema) -> None:
    if item is None:
        merged.pop(name, None)
        return
    live, below = merged.get(name), schema_below(schema, name)
    old, new = as_object(live), as_object(item)
    items, added = as_list(live), as_list(item)
    if old is not None and new is not None:
        merged[name] = _objects(old, new, below)
    elif items is not None and added is not None:
        merged[name] = _lists(items, added, below)
    elif _is_directive(item):
        merged.pop(name, None)
    else:
        merged[name] = _plain(item)


def _lists(live: list[object], patch: list[object], schema: Schema) -> list[object]:
    if not isinstance(schema, ListOf) or not schema.patch_key:
        return [_plain(item) for item in patch]
    merged, added, current = _merged(live, patch, schema)
    return _ordered(merged, added, current, _identity(schema))


def _merged(
    live: list[object], patch: list[object], schema: ListOf
) -> tuple[list[object], list[object], list[object]]:
    """Return three lists: merged items (new ones last), items of the patch, and live items that the patch keeps."""
    if schema.patch_key == _SCALARS:
        return _distinct([*live, *patch]), patch, live
    identify = _identity(schema)
    added, remaining = _after_directives(live, patch, schema.patch_key)
    merged = list(remaining)
    index_by_key: dict[bytes, int] = {}
    for at, item in enumerate(merged):
        index_by_key.setdefault(identify(item), at)
    for entry in added:
        index = index_by_key.setdefault(identify(entry), len(merged))
        if index == len(merged):
            merged.append(_plain(entry))
        else:
            old = object_at(merged[index])
            merged[index] = _objects(old, entry, resolved(schema.item))
    return merged, list(added), remaining


def _after_directives(live: list[object], patch: list[object], key: str) -> tuple[list[Json], list[object]]:
    """Apply the ``$patch`` directives of a list.

    Return the items that the patch adds or merges, and the live items that are neither deleted nor replaced.
    """
    added: list[Json] = []
    deleted_keys: set[bytes] = set()
    keeps = True
    for item in patch:
        entry = as_object(item)
        if entry is None:
            raise StrategicMergeError(f"an item of a list that is merged by {key} is not an object")
        directive = entry.get(_PATCH)
        rest = {name: value for name, value in entry.items() if name != _PATCH}
        if _PATCH in entry and directive not in ("replace", "delete"):
            raise StrategicMergeError(f"unknown patch type: {directive} in map: {go_texts.of(entry)}")
        if directive == "replace":
            keeps = False
            continue  # the other fields of such an item have no effect
        if key not in rest:
            raise StrategicMergeError(f"map: {go_texts.of(rest)} does not contain declared merge key: {key}")
        if directive == "delete":
            deleted_keys.add(_encoded(rest[key]))
        else:
            added.append(rest)
    remaining = (
        [item for item in live if _encoded(object_at(item).get(key)) not in deleted_keys] if keeps else []
    )
    return added, remaining


def _set_order(result: Json, patch: Json, name: str, order: object, schema: Schema) -> None:
    """Merge a list and sort it in the order of a ``$setElementOrder`` directive."""
    order_list, below = as_list(order), schema_below(schema, name)
    if order_list is None:
        raise StrategicMergeError(f"{_ORDER}{name} is not a list")
    live, items = as_list(result.get(name)), as_list(patch.get(name))
    if live is None and items is None:
        return
    if not isinstance(below, ListOf) or not below.patch_key:
        raise StrategicMergeError(f"{_ORDER}{name} orders a list that is not merged")
    if items is None:
        merged = live or []
    elif live is None:
        merged = [_plain(item) for item in items if not _is_directive(item)]
    else:
        merged = _merged(live, items, below)[0]
    # If items were deleted, new items take over their positions in the live order, as in Kubernetes.
    live_items = merged[: len(live or [])]
    result[name] = _ordered(merged, order_list, live_items, _identity(below))


def _delete(result: Json, name: str, items: object) -> None:
    deleted, live = as_list(items), as_list(result.get(name))
    if deleted is None:
        raise StrategicMergeError(f"{_DELETE}{name} is not a list")
    if live is not None:
        unwanted = {_encoded(item) for item in deleted}
        result[name] = [item for item in live if _encoded(item) not in unwanted]


def _retained(live: Json, patch: Json) -> Json:
    """Return the live object with only the keys that ``$retainKeys`` lists; unchanged if the patch has no such list."""
    if _RETAIN not in patch:
        return dict(live)
    keys = as_list(patch[_RETAIN])
    if keys is None:
        raise StrategicMergeError(f"{_RETAIN} is not a list")
    for name, value in patch.items():
        if value is not None and not name.startswith("$") and name not in keys:
            raise StrategicMergeError(f"the patch sets {name}, which its {_RETAIN} does not retain")
    return {name: item for name, item in live.items() if name in keys}


def _plain(value: object) -> object:
    """Return a value without directives and nulls, for a field or item that does not exist yet."""
    fields, items = as_object(value), as_list(value)
    if fields is not None:
        return {
            name: _plain(item)
            for name, item in fields.items()
            if item is not None
            and not _is_directive(item)
            and not name.startswith((_ORDER, _DELETE))
            and name not in {_PATCH, _RETAIN}
        }
    if items is not None:
        return [_plain(item) for item in items if not _is_directive(item)]
    return value


def _is_directive(item: object) -> bool:
    """Whether the item has a ``$patch`` directive; it is then not added as content."""
    return _PATCH in object_at(item)


def _distinct(items: list[object]) -> list[object]:
    result: dict[bytes, object] = {}
    for item in items:
        result.setdefault(_encoded(item), item)
    return list(result.values())


def _identity(schema: ListOf) -> Callable[[object], bytes]:
    """Return a function from a list item to its merge key."""
    key = schema.patch_key
    return lambda item: _encoded(item if key == _SCALARS else object_at(item).get(key))


def _encoded(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _ordered(
    merged: Iterable[object],
    order_list: Iterable[object],
    live: Iterable[object],
    identify: Callable[[object], bytes],
) -> list[object]:
    """Return ``merged`` sorted: items of ``order_list`` in its order, all other items in the order of ``live``.

    An item outside of ``order_list`` precedes an item of it if it does so in ``live``. ``identify`` returns the key of
    an item.
    """
    order_indexes, live_indexes = _first_indexes(order_list, identify), _first_indexes(live, identify)
    items = [(identify(item), item) for item in merged]
    last = len(live_indexes)
    named = sorted(
        (keyed for keyed in items if keyed[0] in order_indexes), key=lambda keyed: order_indexes[keyed[0]]
    )
    others = sorted(
        (keyed for keyed in items if keyed[0] not in order_indexes),
        key=lambda keyed: live_indexes.get(keyed[0], last),
    )
    result: list[object] = []
    left = right = 0
    while left < len(others) and right < len(named):
        left_index, right_index = live_indexes.get(others[left][0]), live_indexes.get(named[right][0])
        if left_index is not None and right_index is not None and left_index < right_index:
            result.append(others[left][1])
            left += 1
        else:
            result.append(named[right][1])
            right += 1
    return result + [item for _identity, item in (*named[right:], *others[left:])]


def _first_indexes(items: Iterable[object], identify: Callable[[object], bytes]) -> dict[bytes, int]:
    """Return the first index of each item, by the item's key."""
    result: dict[bytes, int] = {}
    for index, item in enumerate(items):
        result.setdefault(identify(item), index)
    return result
