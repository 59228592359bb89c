"""Conditions of a change on the current object: its uid and resourceVersion, and the time of its deletion."""

import json
from typing import Final

from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.schema import custom_kinds
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.values import resource_versions
from events.kube_objects import KubeObject

_NO_VERSION: Final = (None, "", "0")
"""Values of ``resourceVersion`` in a body that name no version."""

_CLUSTERS: Final = "clusters.cluster.karmada.io"
_VERSIONED: Final = frozenset(
    {
        custom_kinds.DEFINITIONS,
        "leases.coordination.k8s.io",
        "poddisruptionbudgets.policy",
    }
)
"""Built-in Kubernetes kinds whose replacement must contain a resourceVersion."""

_CREATED_BY_REPLACEMENT: Final = frozenset(
    {
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "endpoints",
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "limitranges",
        "rolebindings.rbac.authorization.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "services",
    }
)
"""Kinds whose replacement creates the object if there is none, as in their registries in Kubernetes."""

_ENDING: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")


class AheadError(StatusError):
    """The object's resourceVersion is newer than any this server knows; another replica may have returned it."""

    def __init__(self, resource: Resource, name: str) -> None:
        conflict = status_objects.conflict(resource, name)
        super().__init__(conflict.code, conflict.reason, conflict.message, conflict.details)


def check_version(resource: Resource, live: KubeObject, new: KubeObject, newest: int) -> None:
    """Raise StatusError if ``new`` has another uid than ``live``, or an older resourceVersion.

    Raises AheadError if the resourceVersion of ``new`` is above ``newest``, the highest one that this server knows.
    """
    name = live.name
    uid = new.metadata.get("uid")
    if uid and uid != live.uid:
        raise status_objects.other_uid(resource, name, str(uid), live.uid)
    seen = new.metadata.get("resourceVersion")
    if seen in _NO_VERSION:
        return
    if not resource_versions.is_valid(seen):
        raise status_objects.bad_request(f"metadata.resourceVersion: {json.dumps(seen)} is not a version")
    number, current = int(str(seen)), int(live.resource_version)
    # A change of the status that the engine derives raises the resourceVersion that clients read, but not
    # that of ``live``. A newer resourceVersion than that of ``live`` is therefore no conflict.
    if number < current:
        raise status_objects.conflict(resource, name)
    # With an empty log ``newest`` is 0, but bootstrap objects already have a higher resourceVersion.
    if number > max(newest, current):
        raise AheadError(resource, name)


def check_versioned(resource: Resource, name: str, new: KubeObject) -> None:
    """Raise StatusError if a replacement names no resourceVersion although its kind needs one.

    Custom kinds (including Karmada's) and some of Kubernetes' own kinds need one. Clusters do not, because in Karmada
    they are served by an aggregated API server.
    """
    is_custom = not resource.is_kubernetes_own and resource.qualified != _CLUSTERS
    needs_version = is_custom or resource.qualified in _VERSIONED
    if needs_version and new.metadata.get("resourceVersion") in _NO_VERSION:
        raise status_objects.not_versioned(resource, name)


def may_create(resource: Resource, name: str, new: KubeObject) -> bool:
    """Whether a replacement of this kind creates a missing object.

    Raises StatusError if it does, but ``new`` has a uid, which a new object may not set.
    """
    if resource.qualified not in _CREATED_BY_REPLACEMENT:
        return False
    if uid := new.metadata.get("uid"):
        raise status_objects.other_uid(resource, name, str(uid), "")
    return True


def check_not_ended(resource: Resource, live: KubeObject, new: KubeObject) -> None:
    """Raise StatusError if ``new`` sets another time of deletion than ``live``: only a DELETE may set it."""
    before, after = live.metadata, new.metadata
    changed = [name for name in _ENDING if after.get(name) not in (None, before.get(name))]
    if changed:
        wrong = [causes.invalid(f"metadata.{name}", after[name], "field is immutable") for name in changed]
        raise status_objects.invalid(resource, live.name, wrong)
