"""Which namespaces belong to the control plane, and which are propagated to clusters. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from events import vocabulary
from events.json_values import Json
from events.kube_objects import KubeObject

KIND: Final = vocabulary.NAMESPACE
SKIPPED: Final = "namespace.karmada.io/skip-auto-propagation"
"""Label of a namespace that is not propagated; clusters that have the namespace already keep it as it was."""

_RESERVED: Final = frozenset({"karmada-system", "karmada-cluster"})
_RESERVED_PREFIXES: Final = (vocabulary.EXECUTION_NAMESPACE_PREFIX, "kube-")
DEFAULT: Final = "default"
SYSTEM: Final = "kube-system"
OF_EVERY_CLUSTER: Final = (DEFAULT, "kube-node-lease", "kube-public", SYSTEM)
BUILT_IN: Final = frozenset({*OF_EVERY_CLUSTER, *_RESERVED})
"""Namespaces that always exist in the control plane, without having been created."""

_TRUE: Final = "true"


class PropagatedNamespace(NamedTuple):
    """A namespace as applied in a cluster, with the labels and annotations that it has there.

    ``created_ms`` is the creation time of its work.
    """

    manifest: KubeObject
    created_ms: int


def finalized_spec() -> Json:
    """Return the spec that every namespace has: Kubernetes' own finalizer."""
    return {"finalizers": ["kubernetes"]}


def shown(value: KubeObject) -> KubeObject:
    """Return a namespace with the spec and the status that every API shows."""
    return value.with_fields({"spec": finalized_spec(), "status": shown_status(value)})


def shown_status(value: KubeObject) -> Json:
    """Return the status of a namespace: its phase."""
    return {"phase": "Terminating" if value.is_ending else "Active"}


def is_reserved(name: str) -> bool:
    """Return whether a namespace belongs to the control plane (of Karmada or of Kubernetes)."""
    return name in _RESERVED or name.startswith(_RESERVED_PREFIXES)


def is_propagated(name: str, labels: Mapping[str, str]) -> bool:
    """Return whether a namespace is propagated: all but ``default``, reserved ones and those with label ``SKIPPED``."""
    if name == DEFAULT or is_reserved(name):
        return False
    return labels.get(SKIPPED, "").lower() != _TRUE
