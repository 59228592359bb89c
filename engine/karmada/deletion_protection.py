"""Protection of objects against deletion by a label, as Karmada's webhook for deletions does it."""

from typing import Final

from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from events.kube_objects import KubeObject

LABEL: Final = "resourcetemplate.karmada.io/deletion-protected"
ALWAYS: Final = "Always"
_WEBHOOK: Final = "resourcedeletionprotection.karmada.io"
_REASON: Final = f"This resource is protected, please make sure to remove the label: {LABEL}"


def is_protected(value: KubeObject) -> bool:
    """Return whether an object may not be deleted; values of the label other than Always have no effect."""
    return value.labels.get(LABEL) == ALWAYS


def check(value: KubeObject) -> None:
    """Raise StatusError (403) if the object is protected; Clusters are refused by their API server, without webhook."""
    if not is_protected(value):
        return
    if value.kind == "Cluster":
        name = value.name
        message = f'clusters.cluster.karmada.io "{name}" is forbidden: {_REASON}'
        raise StatusError(
            403, "Forbidden", message, {"name": name, "group": "cluster.karmada.io", "kind": "clusters"}
        )
    raise status_objects.denied(_WEBHOOK, _REASON)
