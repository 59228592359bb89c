"""Sets of fields: who owns what of an object, in the form of ``managedFields`` (FieldsV1).

A path is a tuple of steps in FieldsV1's own notation: ``f:name`` a field, ``k:{"name":"a"}`` the item of a list
with these keys, ``v:"x"`` the item of a set with this value. A set is a frozenset of paths.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias, cast

import msgspec

from engine.kube.schemas import Json, as_object

Path: TypeAlias = tuple[str, ...]
FieldSet: TypeAlias = frozenset[Path]

EMPTY: Final[FieldSet] = frozenset()
_ITSELF: Final = "."
_DEPTH_MAX: Final = 128
_KINDS: Final = ("f:", "k:", "v:", "i:")


class FieldSetError(ValueError):
    """Something that is no set of fields in the form of FieldsV1."""


def field(name: str) -> str:
    """The step to a field."""
    return f"f:{name}"


def item(keys: Json) -> str:
    """The step to the item of a list that has these keys."""
    return f"k:{msgspec.json.encode(keys, order='sorted').decode()}"


def member(value: object) -> str:
    """The step to the item of a set."""
    return f"v:{msgspec.json.encode(value, order='sorted').decode()}"


def encode(fields: FieldSet) -> Json:
    """The set as FieldsV1; paths in the order of their steps, so that equal sets give equal bytes."""
    root: Json = {}
    # In this order a path comes before those below it.
    for path in sorted(fields):
        at = root
        for place, step in enumerate(path[:-1], 1):
            below = cast("Json", at.setdefault(step, {}))
            if not below and path[:place] in fields:
                below[_ITSELF] = {}
            at = below
        at.setdefault(path[-1], {})
    return root


def decode(value: object) -> FieldSet:
    """The set that FieldsV1 stands for; raises FieldSetError."""
    found: set[Path] = set()
    waiting: list[tuple[object, Path]] = [(value, ())]
    while waiting:
        at, path = waiting.pop()
        held = as_object(at)
        if held is None or len(path) > _DEPTH_MAX:
            raise FieldSetError(f"FieldsV1 has no object, or is too deep, at {show(path[:3])}")
        if not held and path:
            found.add(path)
        for step, below in held.items():
            if step == _ITSELF:
                found.add(path)
            elif step.startswith(_KINDS):
                waiting.append((below, (*path, step)))
            else:
                raise FieldSetError(f"{step[:40]!r} is no step of FieldsV1")
    return frozenset(found)


def with_parents(fields: FieldSet) -> FieldSet:
    """The set, and every field on the way to one of its paths."""
    parents = {path[:size] for path in fields for size in range(1, len(path))}
    return fields | {parent for parent in parents if parent[-1].startswith("f:")}


def beyond(fields: FieldSet, roots: Iterable[Path]) -> FieldSet:
    """The set without the roots and what lies below them."""
    cut = frozenset(roots)
    if not cut:
        return fields
    sizes = {len(root) for root in cut}
    if len(sizes) == 1:
        (size,) = sizes
        return frozenset(path for path in fields if path[:size] not in cut)
    return frozenset(path for path in fields if not any(path[:size] in cut for size in sizes))


def order(path: Path) -> tuple[tuple[bool, str], ...]:
    """A key to sort paths by, as Kubernetes lists them: what ends at a place before what goes on below it."""
    return tuple((place < len(path) - 1, step) for place, step in enumerate(path))


def show(path: Path) -> str:
    """The path as errors have it: ``.spec.containers[name="web"].image``."""
    return "".join(_shown(step) for step in path)


def _shown(step: str) -> str:
    kind, text = step[:2], step[2:]
    match kind:
        case "f:":
            return f".{text}"
        case "k:":
            keys = as_object(_read(text)) or {}
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
