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
"""Finalizer of an object whose deletion keeps its dependents; first their references to it are removed."""

_OF_COLLECTOR: Final = (FOREGROUND, ORPHAN)


class Propagation(enum.StrEnum):
    """Effect of a deletion on the dependents of the object.

    Dependents are deleted after the object (background) or before it (foreground), or are kept (orphan). If unset, the
    finalizers of the object determine the effect.
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
    """Whether the deletion of an object has begun, and its dependents are deleted first."""
    return value.is_ending and FOREGROUND in value.list_at("metadata", "finalizers")


def is_orphaning(value: KubeObject) -> bool:
    """Whether the deletion of an object has begun, and its dependents are kept."""
    return value.is_ending and ORPHAN in value.list_at("metadata", "finalizers")


def resolved(propagation: Propagation, finalizers: Sequence[object]) -> Propagation:
    """Return ``propagation`` or, if it is unset, the effect that the object's finalizers determine."""
    if propagation is not Propagation.UNSET:
        return propagation
    if ORPHAN in finalizers:
        return Propagation.ORPHAN
    return Propagation.FOREGROUND if FOREGROUND in finalizers else Propagation.BACKGROUND


def finalizers_during_deletion(finalizers: Sequence[str], propagation: Propagation) -> list[str]:
    """Return the finalizers during a deletion: of the garbage collector's, only that of ``propagation``."""
    match propagation:
        case Propagation.UNSET:
            return list(finalizers)
        case Propagation.BACKGROUND:
            return without_collector_finalizers(finalizers)
        case Propagation.FOREGROUND:
            return _with_only(finalizers, FOREGROUND)
        case Propagation.ORPHAN:
            return _with_only(finalizers, ORPHAN)


def without_collector_finalizers(finalizers: Sequence[str]) -> list[str]:
    """Return the finalizers except those of the garbage collector (foregroundDeletion and orphan)."""
    return [name for name in finalizers if name not in _OF_COLLECTOR]


def _with_only(finalizers: Sequence[str], finalizer: str) -> list[str]:
    """Return the finalizers with ``finalizer`` as the only one of the garbage collector; it is added if missing."""
    if finalizer not in finalizers:
        return [*without_collector_finalizers(finalizers), finalizer]
    return [name for name in finalizers if name == finalizer or name not in _OF_COLLECTOR]
