"""The selector of a Job and the labels of its pods, which an API server derives from the Job's uid and name.

Reads add them, and writes remove them, so that a client that writes a Job back does not change its pod template.
"""

from typing import Final

from events import vocabulary
from events.json_values import Json, object_at
from events.kube_objects import KubeObject

_SELECTED: Final = "batch.kubernetes.io/controller-uid"


def labels(uid: str, name: str) -> Json:
    """Return the labels of the pods of a Job."""
    return dict(zip(vocabulary.JOB_LABELS, (uid, name, uid, name), strict=True))


def is_derived(job: KubeObject) -> bool:
    """Whether an object is a Job whose selector is derived, not written by a client."""
    return job.type_meta == vocabulary.JOB and job.at("spec", "manualSelector") is not True


def shown(value: KubeObject) -> KubeObject:
    """Return the object; a Job with its derived selector and the derived labels in its pod template."""
    if not is_derived(value):
        return value
    selector = {"matchLabels": {_SELECTED: value.uid}}
    spec = {**value.object_at("spec"), "selector": selector}
    return _with_labels(value.with_fields({"spec": spec}), labels(value.uid, value.name))


def stored(value: KubeObject) -> KubeObject:
    """Return the object; a Job without its derived selector and derived labels."""
    if not is_derived(value):
        return value
    spec = {name: item for name, item in value.object_at("spec").items() if name != "selector"}
    return _with_labels(value.with_fields({"spec": spec}), {})


def _with_labels(job: KubeObject, derived: Json) -> KubeObject:
    """Return the Job with all derived labels of its pod template replaced by ``derived``."""
    template = job.object_at("spec", "template")
    metadata = object_at(template, "metadata")
    kept = {
        name: text
        for name, text in object_at(metadata, "labels").items()
        if name not in vocabulary.JOB_LABELS
    }
    changed = {name: item for name, item in metadata.items() if name != "labels"}
    if kept or derived:
        changed["labels"] = {**kept, **derived}
    return job.with_fields({"spec": {**job.object_at("spec"), "template": {**template, "metadata": changed}}})
