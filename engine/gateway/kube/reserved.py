"""Objects by which replicas come to have the same keys: only administrators may write them.

Whoever could write a request for the keys would get them, and be an administrator from then on.
"""

from typing import Final

from engine.gateway.door_wishes import Target
from engine.kube.rights import User
from engine.kube.statuses import StatusError

NAMESPACE: Final = "karmada-system"
_PREFIX: Final = "reballast-"
KEYS: Final = f"{_PREFIX}keys"
"""Which keys count."""

ASKING: Final = f"{_PREFIX}keys-for-"
"""How the names of requests for them begin."""


def check(target: Target, user: User) -> None:
    """Raises StatusError where a user may not write an object, whatever roles they have."""
    named = (target.kind, target.namespace) == ("ConfigMap", NAMESPACE) and target.name.startswith(_PREFIX)
    if named and not user.is_master:
        message = (
            f'configmaps "{target.name}" is forbidden: only members of system:masters write what begins with'
            f" {_PREFIX} in {NAMESPACE}"
        )
        raise StatusError(403, "Forbidden", message, {"name": target.name, "kind": "configmaps"})
