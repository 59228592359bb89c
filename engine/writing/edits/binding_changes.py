"""The writable fields of a binding; the engine decides everything else.

As in Karmada, ``suppressDeletion: false`` in an eviction task allows the deletion of a workload that a graceful
eviction keeps. A queueing controller sets ``suspension.scheduling`` to delay a workload.
"""

from http import HTTPStatus
from typing import Final

import msgspec

from engine.kubeapi.admission import schema_validation
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.schema.resources import Resource
from engine.writing.edits.objects import Replacement
from engine.writing.mutations import BindingChange, Edit, Edited, Target
from events import vocabulary
from events.json_values import Json, object_at
from events.kube_objects import KubeObject

_GROUP: Final = "work.karmada.io"
_TASKS: Final = "gracefulEvictionTasks"
_SUPPRESS: Final = "suppressDeletion"
_SUSPENSION: Final = "suspension"
_SUSPENDED: Final = ("scheduling", "dispatching")
_NOT_COMPARED: Final = ("managedFields", "resourceVersion")


def is_binding(resource: Resource) -> bool:
    """Whether a kind is ResourceBinding or ClusterResourceBinding."""
    return resource.group == _GROUP and resource.kind in vocabulary.BINDING_KINDS


def read(resource: Resource, shown: KubeObject, edit: Edit) -> tuple[BindingChange, Edited]:
    """Return the changes of writable fields that an edit of a binding makes, and the edited binding.

    Raises StatusError: 403 if the edit changes anything else, 422 if a writable field gets a value of another type.
    """
    live = KubeObject(msgspec.json.decode(msgspec.json.encode(shown.document), type=Json))
    edited = _edited(resource, live, edit)
    desired = edited.value
    old, new = _tasks(live), _tasks(desired)
    is_rest_unchanged = _without_writable_fields(live) == _without_writable_fields(desired)
    if not is_rest_unchanged or _without_suppression(old) != _without_suppression(new):
        raise _forbidden(resource, live)
    clusters: list[str] = []
    for task, changed_task in zip(old, new, strict=True):
        if task.get(_SUPPRESS) == changed_task.get(_SUPPRESS):
            continue
        if changed_task.get(_SUPPRESS) is not False:
            raise _forbidden(resource, live)
        clusters.append(str(task.get("fromCluster")))
    _check_types(resource, live, desired)
    template = live.object_at("spec", "resource")
    target = Target(
        api_version=str(template.get("apiVersion")),
        kind=str(template.get("kind")),
        namespace=str(template.get("namespace") or ""),
        name=str(template.get("name")),
    )
    scheduling, dispatching = (_changed(name, live, desired) for name in _SUSPENDED)
    change = BindingChange(
        target=target, clusters=tuple(clusters), scheduling=scheduling, dispatching=dispatching
    )
    return change, edited


def _edited(resource: Resource, live: KubeObject, edit: Edit) -> Edited:
    """Return the edited binding.

    A patch that is based on an older version and changes forbidden fields is refused as forbidden (403), not as a
    conflict (409): the engine writes bindings all the time, so after a conflict the client would only retry. A
    replacement based on an older version is a conflict, because it does not show which fields the client wants to
    change.
    """
    try:
        return edit.apply(live)
    except StatusError as error:
        if error.code != HTTPStatus.CONFLICT or isinstance(edit, Replacement):
            raise
        unversioned = live.with_metadata({"resourceVersion": "0"})
        if _without_writable_fields(live) != _without_writable_fields(edit.apply(unversioned).value):
            raise _forbidden(resource, live) from None
        raise


def _tasks(value: KubeObject) -> list[Json]:
    return value.objects_at("spec", _TASKS)


def _without_writable_fields(value: KubeObject) -> Json:
    """The binding without eviction tasks, suspensions that clients may write, field owners and resourceVersion."""
    spec, metadata = value.object_at("spec"), value.metadata
    suspension = object_at(spec, _SUSPENSION)
    return {
        "spec": {name: item for name, item in spec.items() if name not in (_TASKS, _SUSPENSION)},
        _SUSPENSION: {name: item for name, item in suspension.items() if name not in _SUSPENDED},
        "metadata": {name: item for name, item in metadata.items() if name not in _NOT_COMPARED},
    }


def _check_types(resource: Resource, live: KubeObject, desired: KubeObject) -> None:
    """Raise StatusError (422) if the edit sets a value of a wrong type, which would otherwise be ignored."""
    before, after = (
        schema_validation.value_faults(value.document, resource.schema) for value in (live, desired)
    )
    if wrong := [cause for cause in after if cause not in before]:
        raise status_objects.invalid(resource, live.name, wrong)


def _changed(name: str, live: KubeObject, desired: KubeObject) -> bool | None:
    """Whether scheduling or dispatching (``name``) is suspended after an edit; None if the edit does not change it."""
    before, after = (value.at("spec", _SUSPENSION, name) is True for value in (live, desired))
    return None if before == after else after


def _without_suppression(tasks: list[Json]) -> list[Json]:
    """The eviction tasks without ``suppressDeletion``, the field that clients may write."""
    return [{name: item for name, item in task.items() if name != _SUPPRESS} for task in tasks]


def _forbidden(resource: Resource, live: KubeObject) -> StatusError:
    reason = (
        f"a {resource.kind} is made by the engine; write a template and a policy instead. "
        f"Only spec.{_SUSPENSION}.scheduling and .dispatching can be set, and "
        f"spec.{_TASKS}[].{_SUPPRESS} to false: this allows the deletion of the old copy"
    )
    return status_objects.forbidden(resource, live.name, reason)
