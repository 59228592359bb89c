"""JSON patches (RFC 6902) and merge patches (RFC 7396).

Strategic merge patches are in ``strategic_merge``. Arguments are not changed, except by ``json_patch_in_place``.
"""

import copy
import re
from typing import Final

import msgspec

from engine.kubeapi.patching.field_paths import same
from events.json_values import Json, as_list, as_object, object_at
from events.limits import shortened

OPERATIONS_MAX: Final = 10_000
"""Limit of operations in one JSON patch, as in Kubernetes."""

_COPIED_BYTES_MAX: Final = 3 * 1024 * 1024
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_FROM_END: Final = re.compile(r"-[1-9][0-9]{0,9}")
_END: Final = "-"
_WITH_VALUE: Final = ("add", "replace", "test")


class PatchError(ValueError):
    """A JSON patch that cannot be applied; the message has the index of the operation and the reason."""


def merge_patched(value: object, patch: object) -> object:
    """Apply a merge patch: null removes a field, objects are merged, everything else is replaced."""
    fields = as_object(patch)
    if fields is None:
        return patch
    result = dict(object_at(value))
    for name, item in fields.items():
        if item is None:
            result.pop(name, None)
        else:
            result[name] = merge_patched(result.get(name), item)
    return result


def json_patched(value: object, operations: object) -> object:
    """Return a patched copy of the value, None if nothing is left; raises PatchError.

    As in Kubernetes, ``replace`` adds an object field that does not exist, a test for null passes if there is no such
    field, and negative indexes of lists count from the end.
    """
    return json_patch_in_place(copy.deepcopy(value), operations, is_api=True)


def json_patch_in_place(value: object, operations: object, *, is_api: bool = False) -> object:
    """Apply a JSON patch in place; the value is changed even if PatchError is raised.

    Operations follow RFC 6902; with ``is_api``, they follow the API server (see ``json_patched``).
    """
    listed = as_list(operations)
    if listed is None:
        raise PatchError("a JSON patch is a list of operations")
    if len(listed) > OPERATIONS_MAX:
        raise PatchError(f"{len(listed)} operations; a JSON patch has at most {OPERATIONS_MAX}")
    # Held in an object, so that an operation on the whole document needs no special case.
    root: Json = {"": value}
    left = _COPIED_BYTES_MAX
    for index, item in enumerate(listed):
        try:
            left = _carry_out(root, item, left, is_api=is_api)
        except PatchError as error:
            raise PatchError(f"operation {index}: {error}") from None
    return root.get("")


def at(value: object, pointer: str) -> object:
    """Return the value at a JSON pointer; raises PatchError."""
    return _get({"": value}, _steps(pointer, "path"))


def _carry_out(root: Json, item: object, left: int, *, is_api: bool) -> int:
    """Apply one operation to the tree below ``root``.

    ``left`` is the number of bytes that operations may still copy; return what then remains of it.
    """
    operation = as_object(item)
    if operation is None:
        raise PatchError("is not an object")
    name = operation.get("op")
    path = _path(root, operation, "path", is_api=is_api, is_new=name in ("add", "copy"))
    if name in _WITH_VALUE and "value" not in operation:
        raise PatchError(f"{name} has no value")
    match name:
        case "add":
            _add(root, path, copy.deepcopy(operation["value"]))
        case "remove":
            _remove(root, path)
        case "replace":
            _replace(root, path, copy.deepcopy(operation["value"]), may_be_absent=is_api)
        case "move":
            source = _path(root, operation, "from", is_api=is_api)
            if path[: len(source)] == source and path != source:
                raise PatchError("moves a value into itself")
            value = _remove(root, source)
            _add(root, _path(root, operation, "path", is_api=is_api, is_new=True), value)
        case "copy":
            copied = _get(root, _path(root, operation, "from", is_api=is_api))
            # Repeated copies double the value, so the copied size is limited, not only the number of
            # operations.
            body = _json(copied)
            left -= len(body)
            if left < 0:
                raise PatchError("copies too much")
            _add(root, path, msgspec.json.decode(body))
        case "test":
            if not _is_as_tested(root, path, operation["value"], is_api=is_api):
                raise PatchError(f"the value at {operation.get('path')} is not the tested one")
        case _:
            raise PatchError(f"{str(name)[:40]!r} is not one of add, remove, replace, move, copy and test")
    return left


def _json(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        # YAML and Python have values that JSON does not, such as integers of more than 64 bits.
        raise PatchError(f"copies a value that is not JSON: {error}") from None


def _steps(pointer: object, field: str) -> list[str]:
    """Split a JSON pointer into steps; the first, empty step leads from the root holder to the root value."""
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchError(f"{field} is not a JSON pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")]


def _path(root: Json, operation: Json, field: str, *, is_api: bool, is_new: bool = False) -> list[str]:
    """Return the path in a field of an operation, as steps; ``is_new``: the operation adds a value at the path."""
    steps = _steps(operation.get(field), field)
    return _from_start(root, steps, is_new=is_new) if is_api else steps


def _from_start(root: Json, path: list[str], *, is_new: bool) -> list[str]:
    """Return the path without negative indexes, which count from the end of their lists."""
    result: list[str] = []
    value: object = root
    for number, step in enumerate(path, 1):
        fields, items = as_object(value), as_list(value)
        index = step
        if items is not None and _FROM_END.fullmatch(step):
            index = str(len(items) + int(step) + (is_new and number == len(path)))
        result.append(index)
        if fields is not None:
            value = fields.get(index)
        elif items is not None and _INDEX.fullmatch(index) and int(index) < len(items):
            value = items[int(index)]
        else:
            value = None
    return result


def _is_as_tested(root: Json, path: list[str], value: object, *, is_api: bool) -> bool:
    if is_api and value is None:
        fields = as_object(_get(root, path[:-1]))
        if fields is not None and path[-1] not in fields:
            return True
    return same(_get(root, path), value)


def _get(root: Json, path: list[str]) -> object:
    result: object = root
    for step in path:
        fields, items = as_object(result), as_list(result)
        if fields is not None and step in fields:
            result = fields[step]
        elif items is not None:
            result = items[_list_index(items, step, len(items) - 1)]
        else:
            raise PatchError(f"there is no {_shown(path)}")
    return result


def _add(root: Json, path: list[str], value: object) -> None:
    *parents, last = path
    at = _get(root, parents)
    fields, items = as_object(at), as_list(at)
    if fields is not None:
        fields[last] = value
    elif items is not None:
        items.insert(len(items) if last == _END else _list_index(items, last, len(items)), value)
    else:
        raise PatchError(f"{_shown(parents)} is neither an object nor a list")


def _remove(root: Json, path: list[str]) -> object:
    result = _get(root, path)
    *parents, last = path
    at = _get(root, parents)
    fields, items = as_object(at), as_list(at)
    if fields is not None:
        del fields[last]
    elif items is not None:
        del items[_list_index(items, last, len(items) - 1)]
    return result


def _replace(root: Json, path: list[str], value: object, *, may_be_absent: bool) -> None:
    fields = as_object(_get(root, path[:-1]))
    if not may_be_absent or fields is None or path[-1] in fields:
        _remove(root, path)
    _add(root, path, value)


def _list_index(items: list[object], step: str, most: int) -> int:
    if not _INDEX.fullmatch(step) or int(step) > most:
        raise PatchError(f"{step[:40]!r} is not an index in a list of {len(items)} items")
    return int(step)


def _shown(path: list[str]) -> str:
    return shortened("/".join(path) or "/")
