"""JSON paths as in kubectl: ``{.spec.replicas}``, ``.conditions[?(@.type=="Ready")].status``, ``[*]``.

A subset of kubectl's JSONPath: names, quoted names, indexes, all items, items with a field of a certain
value; the braces are optional. Printer columns, the state that failover preserves and the health rules of
custom kinds use it. A path outside the subset (slices, unions, recursion, text outside the braces) matches
nothing; ``is_readable`` detects it.
"""

import re
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from events.json_values import as_list, as_object, at

_PATH_CHARS_MAX: Final = 1024
_STEP: Final = re.compile(
    r"""\.(?P<name>(?:[^.\[\]\\{}*\s]|\\.)+)"""
    r"""|\[(?P<quote>['"])(?P<quoted>(?:[^'"\\]|\\.)*)(?P=quote)\]"""
    r"""|\[(?P<index>-?\d{1,9})\]"""
    r"""|\[(?P<all>\*)\]"""
    r"""|\[\?\(@\.(?P<field>[\w.-]+)\s*==\s*(?P<mark>['"])(?P<value>[^'"]*)(?P=mark)\)\]""",
    re.DOTALL,
)


class _Step(Struct, frozen=True, kw_only=True):
    """One step of a path: a field name, an index, all items, or all items with a certain field value.

    Without ``name`` and ``index`` the step selects all items; with ``field`` only those whose field equals
    ``value``.
    """

    name: str | None = None
    index: int | None = None
    field: str = ""
    value: str = ""


def values_at(value: object, path: str) -> list[object]:
    """Return all values at a path; empty if there are none or the path cannot be read."""
    steps = _steps(path)
    values = [] if steps is None else [value]
    for step in steps or ():
        values = [below for value in values for below in _below(value, step)]
    return values


def is_readable(path: str) -> bool:
    """Return whether a path is in the supported subset."""
    return _steps(path) is not None


def names(path: str) -> tuple[str, ...]:
    """Return the field names of a path; empty if it goes through lists or cannot be read."""
    steps = _steps(path) or ()
    field_names = tuple(step.name for step in steps if step.name is not None)
    return field_names if len(field_names) == len(steps) else ()


def text(value: object, path: str) -> str | None:
    """Return the values at a path as kubectl prints them: strings unchanged, others as JSON, joined with spaces.

    None if all values are absent or ``null``.
    """
    values = [value for value in values_at(value, path) if value is not None]
    return " ".join(value if isinstance(value, str) else _json(value) for value in values) if values else None


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[_Step, ...] | None:
    if len(path) > _PATH_CHARS_MAX:
        return None
    bare = path.strip().removeprefix("{").removesuffix("}").strip().removeprefix("$")
    bare = bare if bare.startswith((".", "[")) else f".{bare}"
    steps: list[_Step] = []
    position = 0
    while position < len(bare):
        step = _STEP.match(bare, position)
        if step is None:
            return None
        name = step["name"] if step["name"] is not None else step["quoted"]
        if name is not None:
            steps.append(_Step(name=re.sub(r"\\(.)", r"\1", name, flags=re.DOTALL)))
        elif step["index"] is not None:
            steps.append(_Step(index=int(step["index"])))
        else:
            steps.append(_Step(field=step["field"] or "", value=step["value"] or ""))
        position = step.end()
    return tuple(steps)


def _below(value: object, step: _Step) -> list[object]:
    if step.name is not None:
        content = as_object(value)
        return [content[step.name]] if content is not None and step.name in content else []
    items = as_list(value)
    if step.index is not None:
        inside = items is not None and -len(items) <= step.index < len(items)
        return [items[step.index]] if items is not None and inside else []
    if items is None:
        fields = as_object(value)
        items = list(fields.values()) if fields is not None and not step.field else []
    if not step.field:
        return items
    return [item for item in items if at(item, *step.field.split(".")) == step.value]
