"""Protection of the objects by which replicas share their keys: only administrators may write them.

A user that could write a request for the keys would receive them, and with them become an administrator.
"""

from typing import Final

from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.rights.rbac import User
from engine.writing.mutations import Target

NAMESPACE: Final = "karmada-system"
_PREFIX: Final = "reballast-"
KEYS: Final = f"{_PREFIX}keys"
"""Name of the ConfigMap with the current keys."""

ASKING: Final = f"{_PREFIX}keys-for-"
"""Prefix of the names of key requests."""


def check(target: Target, user: User) -> None:
    """Raise StatusError (403) if only ``system:masters`` may write this object, whatever the user's roles allow."""
    named = (target.kind, target.namespace) == ("ConfigMap", NAMESPACE) and target.name.startswith(_PREFIX)
    if named and not user.is_master:
        message = (
            f'configmaps "{target.name}" is forbidden: only members of system:masters write what begins with'
            f" {_PREFIX} in {NAMESPACE}"
        )
        raise StatusError(403, "Forbidden", message, {"name": target.name, "kind": "configmaps"})
