"""Validation of Kubernetes Events, from the published Kubernetes API."""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from events.kube_objects import KubeObject

_DEFAULT: Final = "default"
_TEXT_MAX: Final = {"reportingController": 128, "reportingInstance": 128, "action": 128, "reason": 128}
_NOTE_MAX: Final = 1_024
_FIXED: Final = (
    "action",
    "reason",
    "regarding",
    "related",
    "reportingController",
    "reportingInstance",
    "type",
)
_SPELLED: Final = {"regarding": "involvedObject", "reportingController": "reportingController"}


def core_event(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    """Errors of an Event of ``v1``."""
    yield from _namespace(value, "involvedObject")


def event(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    """Errors of an Event of ``events.k8s.io/v1``."""
    yield from _namespace(value, "regarding")
    if live is None:
        if not value.at("eventTime"):
            yield causes.required("eventTime")
        for field, chars_max in _TEXT_MAX.items():
            text = str(value.at(field) or "")
            if not text:
                yield causes.required(field)
            elif len(text) > chars_max:
                yield causes.invalid(field, text, f"can have at most {chars_max} characters")
        yield from words.one_of(value.document, "type", "", ("Normal", "Warning"))
        note = value.text_at("note")
        if len(note) > _NOTE_MAX:
            yield causes.invalid("note", note, f"can have at most {_NOTE_MAX} characters")
        return
    for field in _FIXED:
        if value.at(field) != live.at(field):
            yield causes.invalid(_SPELLED.get(field, field), value.at(field), "field is immutable")


def _namespace(value: KubeObject, about: str) -> Iterator[Cause]:
    """Yield an error unless the Event is in its object's namespace, or for cluster-scoped objects in an allowed one."""
    own, of_object = (value.text_at(part, "namespace") for part in ("metadata", about))
    if own != of_object and (of_object or own != _DEFAULT):
        yield causes.invalid("involvedObject.namespace", of_object, "does not match event.namespace")
