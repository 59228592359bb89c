"""Owner references of objects, and the finalizers with which a deletion waits for dependents, as in Kubernetes."""

import enum
from collections.abc import Collection, Sequence
from typing import Final

from events.json_values import Json
from events.kube_objects import KubeObject

FIELD: Final = "ownerReferences"
FOREGROUND: Final = "foregroundDeletion"
"""Finalizer of an object that is deleted after the objects that it owns."""

ORPHAN: Final = "orphan"
"""Finalizer of an object that is deleted after its dependents have lost their references to it; they stay."""

_OF_COLLECTOR: Final = (FOREGROUND, ORPHAN)


class Propagation(enum.StrEnum):
    """Effect of a deletion on the dependents of the object.

    They are deleted after the object (background) or before it (foreground), or stay (orphan). *Unset*: the finalizers
    of the object decide.
    """

    UNSET = ""
    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


def owners(value: KubeObject) -> list[Json]:
    """Return the references of an object to its owners."""
    return value.objects_at("metadata", FIELD)


def without(value: KubeObject, uids: Collection[object]) -> list[Json]:
    """Return the references of an object to its owners, except to those with one of these uids."""
    return [owner for owner in owners(value) if owner.get("uid") not in uids]


def names(value: KubeObject, uid: str) -> bool:
    """Whether an object names an owner with this uid."""
    return any(owner.get("uid") == uid for owner in owners(value))


def is_blocking(value: KubeObject, uid: str) -> bool:
    """Whether an object delays the foreground deletion of the owner with this uid."""
    return any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") is True for owner in owners(value))


def is_waiting(value: KubeObject) -> bool:
    """Whether an object is being deleted after its dependents."""
    return value.is_ending and FOREGROUND in value.list_at("metadata", "finalizers")


def is_orphaning(value: KubeObject) -> bool:
    """Whether an object is being deleted, and its dependents stay."""
    return value.is_ending and ORPHAN in value.list_at("metadata", "finalizers")


def resolved(propagation: Propagation, finalizers: Sequence[object]) -> Propagation:
    """Return the effect of a deletion of an object with these finalizers."""
    if propagation is not Propagation.UNSET:
        return propagation
    if ORPHAN in finalizers:
        return Propagation.ORPHAN
    return Propagation.FOREGROUND if FOREGROUND in finalizers else Propagation.BACKGROUND


def while_deleted(finalizers: Sequence[str], propagation: Propagation) -> list[str]:
    """Return the finalizers of an object whose deletion has begun; that of another propagation is removed."""
    match propagation:
        case Propagation.UNSET:
            return list(finalizers)
        case Propagation.BACKGROUND:
            return without_collectors(finalizers)
        case Propagation.FOREGROUND:
            return _with_only(finalizers, FOREGROUND)
        case Propagation.ORPHAN:
            return _with_only(finalizers, ORPHAN)


def without_collectors(finalizers: Sequence[str]) -> list[str]:
    """Return the finalizers that others than the garbage collector remove."""
    return [name for name in finalizers if name not in _OF_COLLECTOR]


def _with_only(finalizers: Sequence[str], finalizer: str) -> list[str]:
    """Return finalizers with only this one of the garbage collector's; it keeps its place or is added last."""
    if finalizer not in finalizers:
        return [*without_collectors(finalizers), finalizer]
    return [name for name in finalizers if name == finalizer or name not in _OF_COLLECTOR]
