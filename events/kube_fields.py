"""Fields of Kubernetes objects that Reballast writes itself: their names in JSON, and their types.

They are types of plain dictionaries, which cost nothing at run time.
"""

from typing import Final, NotRequired, TypedDict

import msgspec

from events.json_values import Json

SELF: Final = "."
"""Key in FieldsV1 that marks a path as owned if there are also owned paths below it."""


class Condition(TypedDict, total=False):
    """A condition of a status. The time of the last transition is None while it is unknown."""

    type: str
    status: str
    reason: str
    message: str
    lastTransitionTime: str | None
    lastUpdateTime: str
    lastProbeTime: str


def condition(kind: str, status: str, reason: str, message: str, since: str | None) -> Condition:
    """Return a condition; ``since`` is the time of its last transition, None while that is unknown."""
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since,
    }


class OwnerReference(TypedDict):
    apiVersion: str
    kind: str
    name: str
    uid: str
    controller: bool
    blockOwnerDeletion: NotRequired[bool]


def controlled_by(api_version: str, kind: str, name: str, uid: str) -> OwnerReference:
    """Return the reference to an object's controller; foreground deletion of the controller waits for the object."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


class ManagedFieldsEntry(TypedDict, total=False):
    """The fields that one manager owns."""

    manager: str
    operation: str
    apiVersion: str
    time: str
    fieldsType: str
    fieldsV1: Json
    subresource: str


class ObjectMeta(TypedDict, total=False):
    """The metadata of an object that is derived from the log. Its ``managedFields`` may be encoded already."""

    name: str
    namespace: str
    uid: str
    generation: int
    creationTimestamp: str | None
    resourceVersion: str
    labels: dict[str, str]
    annotations: dict[str, str]
    ownerReferences: list[OwnerReference]
    finalizers: list[str]
    deletionTimestamp: str
    deletionGracePeriodSeconds: int
    managedFields: list[ManagedFieldsEntry] | msgspec.Raw


ListMeta = TypedDict(
    "ListMeta",
    {"resourceVersion": str, "continue": str, "remainingItemCount": int, "annotations": dict[str, str]},
    total=False,
)
"""The metadata of a list or of a watch bookmark; only a bookmark has annotations."""
