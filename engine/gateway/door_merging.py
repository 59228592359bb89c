"""How a new wish and what stands become one object: kubectl's three-way apply, and merge patches (RFC 7396).

The annotation that kubectl leaves is the memory of what was applied last, so that a field that is left out of a
file goes away, while one that somebody else set (by ``scale`` or ``label``) stays. Lists are taken whole.
"""

from typing import Final

import msgspec

from events.forms_schema import as_object

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MEMORY_BYTES_MAX: Final = 262_144
"""Kubernetes' limit on all annotations of an object; what is larger is replaced whole instead of merged."""

Json = dict[str, object]


def applied(wanted: Json, live: Json | None) -> Json:
    """The object after an apply of ``wanted`` on what stands, with the memory of it."""
    plain = remember_nothing(wanted)
    memory = msgspec.json.encode(_with_annotations(plain), order="sorted").decode() + "\n"
    if len(memory) > _MEMORY_BYTES_MAX:
        return plain
    merged = plain if live is None else three_way(_last_applied(live), plain, remember_nothing(live))
    metadata = dict(as_object(merged.get("metadata")) or {})
    metadata["annotations"] = {**(as_object(metadata.get("annotations")) or {}), LAST_APPLIED: memory}
    return {**merged, "metadata": metadata}


def three_way(last: Json, wanted: Json, live: Json) -> Json:
    """``wanted`` over ``live``, without the fields that ``last`` had and ``wanted`` hasn't."""
    found = {name: value for name, value in live.items() if name not in wanted and name not in last}
    for name, value in wanted.items():
        new, old = as_object(value), as_object(live.get(name))
        if new is None or old is None:
            found[name] = value
        else:
            found[name] = three_way(as_object(last.get(name)) or {}, new, old)
    return found


def patched(target: Json, patch: Json) -> Json:
    """The object after a merge patch: null takes a field away, objects are merged, all else is replaced."""
    found = dict(target)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif (inner := as_object(value)) is not None:
            found[name] = patched(as_object(found.get(name)) or {}, inner)
        else:
            found[name] = value
    return found


def difference(old: Json, new: Json) -> Json:
    """The merge patch that leads from one object to another."""
    patch: Json = {name: None for name in old if name not in new}
    for name, value in new.items():
        if name in old and old[name] == value:
            continue
        before, after = as_object(old.get(name)), as_object(value)
        patch[name] = difference(before, after) if before is not None and after is not None else value
    return patch


def is_contested(patch: Json, before: Json, now: Json) -> bool:
    """Whether a field that a merge patch sets is not now what it was before."""
    for name, value in patch.items():
        old, new = before.get(name), now.get(name)
        parts = as_object(value), as_object(old), as_object(new)
        if None not in parts:
            deeper, older, newer = parts
            if is_contested(deeper or {}, older or {}, newer or {}):
                return True
        elif old != new:
            return True
    return False


def remember_nothing(value: Json) -> Json:
    """The object without the memory of what was applied last."""
    metadata = as_object(value.get("metadata")) or {}
    annotations = as_object(metadata.get("annotations"))
    if annotations is None or LAST_APPLIED not in annotations:
        return value
    kept = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
    metadata = {name: item for name, item in metadata.items() if name != "annotations"}
    return {**value, "metadata": {**metadata, "annotations": kept} if kept else metadata}


def _last_applied(live: Json) -> Json:
    annotations = as_object((as_object(live.get("metadata")) or {}).get("annotations")) or {}
    text = annotations.get(LAST_APPLIED)
    if not isinstance(text, str):
        return {}
    try:
        return remember_nothing(msgspec.json.decode(text, type=dict[str, object]))
    except (msgspec.MsgspecError, RecursionError):
        return {}  # somebody wrote it by hand; then nothing is known of what was applied


def _with_annotations(value: Json) -> Json:
    """As kubectl writes it: with annotations, even when there are none."""
    metadata = as_object(value.get("metadata")) or {}
    return {**value, "metadata": {"annotations": {}, **metadata}}
