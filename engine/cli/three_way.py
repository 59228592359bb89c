"""JSON merge patches (RFC 7396) of ``apply``, computed as in kubectl, and of ``edit``.

``apply`` stores the applied object in kubectl's annotation. If a later version of the file leaves out a field, it is
removed. Fields that another command set (``scale``, ``label``) stay. Lists are replaced as a whole.
"""

from typing import Final

import msgspec

from engine.domain import marks
from events.json_values import Json, as_object, decoded, object_at
from events.kube_objects import KubeObject

_LAST_APPLIED_BYTES_MAX: Final = 262_144
"""Kubernetes' limit for annotations. A larger last-applied annotation is omitted: the next apply removes no field."""


def with_last_applied(value: KubeObject) -> KubeObject:
    """The object with kubectl's last-applied annotation."""
    plain = without_last_applied(value)
    noted = plain.with_metadata({"annotations": plain.annotations})
    encoded = msgspec.json.encode(noted.document, order="sorted") + b"\n"
    if len(encoded) > _LAST_APPLIED_BYTES_MAX:
        return plain
    return plain.with_metadata({"annotations": {**plain.annotations, marks.LAST_APPLIED: encoded.decode()}})


def without_last_applied(value: KubeObject) -> KubeObject:
    """The object without the last-applied annotation."""
    if marks.LAST_APPLIED not in value.annotations:
        return value
    kept = {name: text for name, text in value.annotations.items() if name != marks.LAST_APPLIED}
    plain = value.without_metadata("annotations")
    return plain.with_metadata({"annotations": kept}) if kept else plain


def last_applied(live: KubeObject) -> Json:
    """The object applied last, from the annotation; empty if the annotation is absent or invalid."""
    text = live.annotations.get(marks.LAST_APPLIED)
    return decoded(text) if isinstance(text, str) else {}


def patch(last: Json, desired: Json, live: Json) -> Json:
    """The merge patch from ``live`` to ``desired``; it removes only fields in ``last`` that are not in ``desired``."""
    changes: Json = {name: None for name in last if name in live and name not in desired}
    for name, value in desired.items():
        new, old = as_object(value), as_object(live.get(name))
        if new is not None and old is not None:
            inner = patch(object_at(last, name), new, old)
            if inner:
                changes[name] = inner
        elif value != live.get(name):
            changes[name] = value
    return changes


def difference(old: Json, new: Json) -> Json:
    """The merge patch from one object to another."""
    return patch(old, new, old)


def is_conflict(changes: Json, before: Json, now: Json) -> bool:
    """Whether a field that a merge patch sets has changed since ``before``."""
    for name, value in changes.items():
        old, new = before.get(name), now.get(name)
        parts = as_object(value), as_object(old), as_object(new)
        if None not in parts:
            deeper, older, newer = parts
            if is_conflict(deeper or {}, older or {}, newer or {}):
                return True
        elif old != new:
            return True
    return False


def as_read(value: KubeObject) -> KubeObject:
    """The object as it is printed: without the last-applied annotation and without ``managedFields``."""
    return without_last_applied(value).without_metadata("managedFields")
