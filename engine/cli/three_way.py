"""Merge patches (RFC 7396) that the command line sends: of ``apply`` as kubectl computes them, and of ``edit``.

The annotation that kubectl leaves remembers what was applied last, so that a field that is left out of a file goes
away, while one that somebody else set (by ``scale`` or ``label``) stays. Lists are replaced whole.
"""

from typing import Final

import msgspec

from events.forms_schema import as_object

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MEMORY_BYTES_MAX: Final = 262_144
"""Kubernetes' limit on all annotations of an object; without the annotation, fields left out of a file stay."""

Json = dict[str, object]


def with_memory(wanted: Json) -> Json:
    """The object with the annotation that remembers it, as kubectl writes it."""
    plain = without_memory(wanted)
    metadata = dict(as_object(plain.get("metadata")) or {})
    annotations = as_object(metadata.get("annotations")) or {}
    noted = {**plain, "metadata": {**metadata, "annotations": annotations}}
    memory = msgspec.json.encode(noted, order="sorted").decode() + "\n"
    if len(memory) > _MEMORY_BYTES_MAX:
        return plain
    metadata["annotations"] = {**annotations, LAST_APPLIED: memory}
    return {**plain, "metadata": metadata}


def without_memory(value: Json) -> Json:
    """The object without the annotation that remembers what was applied last."""
    metadata = as_object(value.get("metadata")) or {}
    annotations = as_object(metadata.get("annotations"))
    if annotations is None or LAST_APPLIED not in annotations:
        return value
    kept = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
    metadata = {name: item for name, item in metadata.items() if name != "annotations"}
    return {**value, "metadata": {**metadata, "annotations": kept} if kept else metadata}


def last_applied(live: Json) -> Json:
    """What was applied last, by the annotation; empty where there is none, or where somebody broke it."""
    annotations = as_object((as_object(live.get("metadata")) or {}).get("annotations")) or {}
    text = annotations.get(LAST_APPLIED)
    if not isinstance(text, str):
        return {}
    try:
        return msgspec.json.decode(text, type=Json)
    except (msgspec.MsgspecError, RecursionError):
        return {}


def patch(last: Json, wanted: Json, live: Json) -> Json:
    """The merge patch that puts ``wanted`` over ``live``, and removes what ``last`` had and ``wanted`` has not."""
    found: Json = {name: None for name in last if name in live and name not in wanted}
    for name, value in wanted.items():
        new, old = as_object(value), as_object(live.get(name))
        if new is not None and old is not None:
            inner = patch(as_object(last.get(name)) or {}, new, old)
            if inner:
                found[name] = inner
        elif value != live.get(name):
            found[name] = value
    return found


def difference(old: Json, new: Json) -> Json:
    """The merge patch that leads from one object to another."""
    return patch(old, new, old)


def is_contested(changes: Json, before: Json, now: Json) -> bool:
    """Whether a field that a merge patch sets is not now what it was before."""
    for name, value in changes.items():
        old, new = before.get(name), now.get(name)
        parts = as_object(value), as_object(old), as_object(new)
        if None not in parts:
            deeper, older, newer = parts
            if is_contested(deeper or {}, older or {}, newer or {}):
                return True
        elif old != new:
            return True
    return False
