"""Which namespaces of the control plane exist in every cluster: pure."""

from collections.abc import Mapping
from typing import Final

KIND: Final = ("v1", "Namespace")
SKIPPED: Final = "namespace.karmada.io/skip-auto-propagation"
"""Label of a namespace that clusters do not get; ones that have it already keep it."""

_RESERVED_PREFIXES: Final = ("kube-", "karmada-")
_DEFAULT: Final = "default"
_TRUE: Final = "true"


def is_propagated(name: str, labels: Mapping[str, str]) -> bool:
    """Return whether clusters get a namespace: not one that every cluster has, nor the control plane's own."""
    if name == _DEFAULT or name.startswith(_RESERVED_PREFIXES):
        return False
    return labels.get(SKIPPED, "").lower() != _TRUE
