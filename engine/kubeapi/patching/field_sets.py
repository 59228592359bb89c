"""Sets of field paths in the format of ``managedFields`` (FieldsV1).

A path is a tuple of FieldsV1 steps: ``f:name`` is a field, ``k:{"name":"a"}`` the list item with these keys,
``v:"x"`` the set member with this value. A set is a frozenset of paths.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from events.json_values import Json, as_object, object_at

Path: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[Path]
FieldsV1: TypeAlias = dict[str, "FieldsV1"]
"""A set as it is written: the steps to its paths, nested."""

EMPTY: Final[FieldSet] = frozenset()
ITSELF: Final = "."
"""Step of FieldsV1 for an owned path that has owned paths below it."""

_DEPTH_MAX: Final = 128
_KINDS: Final = ("f:", "k:", "v:", "i:")


class FieldSetError(ValueError):
    """A value that is not valid FieldsV1."""


def field(name: str) -> str:
    """Return the step to a field."""
    return f"f:{name}"


def item(keys: Json) -> str:
    """Return the step to the list item with these keys."""
    return f"k:{msgspec.json.encode(keys, order='sorted').decode()}"


def member(value: object) -> str:
    """Return the step to a member of a set."""
    return f"v:{msgspec.json.encode(value, order='sorted').decode()}"


def encode(fields: FieldSet) -> FieldsV1:
    """Return the set as FieldsV1; equal sets give equal bytes, because paths are sorted."""
    root: FieldsV1 = {}
    # Sorting puts a path before its descendants, so `.` is set when the first descendant is added.
    for path in sorted(fields):
        at = root
        for index, step in enumerate(path[:-1], 1):
            below = at.setdefault(step, {})
            if not below and path[:index] in fields:
                below[ITSELF] = {}
            at = below
        at.setdefault(path[-1], {})
    return root


def decode(value: object) -> FieldSet:
    """Return the set that a FieldsV1 value describes; raises FieldSetError if it is malformed or too deep."""
    # Iterative and with a depth limit, because managedFields come from clients.
    result: set[Path] = set()
    waiting: list[tuple[object, Path]] = [(value, ())]
    while waiting:
        at, path = waiting.pop()
        fields = as_object(at)
        if fields is None or len(path) > _DEPTH_MAX:
            raise FieldSetError(f"FieldsV1 has no object, or is too deep, at {show(path[:3])}")
        if not fields and path:
            result.add(path)
        for step, below in fields.items():
            if step == ITSELF:
                result.add(path)
            elif step.startswith(_KINDS):
                waiting.append((below, (*path, step)))
            else:
                raise FieldSetError(f"{step[:40]!r} is no step of FieldsV1")
    return frozenset(result)


def with_parents(fields: FieldSet) -> FieldSet:
    """Return the set with the fields on the way to each path added."""
    parents = {path[:size] for path in fields for size in range(1, len(path))}
    return fields | {parent for parent in parents if parent[-1].startswith("f:")}


def beyond(fields: FieldSet, roots: Iterable[Path]) -> FieldSet:
    """Return the set without these roots and everything below them."""
    cut = frozenset(roots)
    if not cut:
        return fields
    sizes = {len(root) for root in cut}
    if len(sizes) == 1:
        (size,) = sizes
        return frozenset(path for path in fields if path[:size] not in cut)
    return frozenset(path for path in fields if not any(path[:size] in cut for size in sizes))


def order(path: Path) -> tuple[tuple[bool, str], ...]:
    """Sort key that lists paths as Kubernetes does: a path that ends at a level before those that go deeper."""
    return tuple((index < len(path) - 1, step) for index, step in enumerate(path))


def show(path: Path) -> str:
    """Return the path as error messages show it: ``.spec.containers[name="web"].image``."""
    return "".join(_shown(step) for step in path)


def _shown(step: str) -> str:
    kind, text = step[:2], step[2:]
    match kind:
        case "f:":
            return f".{text}"
        case "k:":
            keys = object_at(_read(text))
            return "[" + ",".join(f"{name}={_plain(value)}" for name, value in sorted(keys.items())) + "]"
        case "v:":
            return f"[={_plain(_read(text))}]"
        case _:
            return f"[{text}]"


def _read(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return text


def _plain(value: object) -> str:
    return msgspec.json.encode(value).decode()
