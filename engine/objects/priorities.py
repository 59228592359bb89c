"""PriorityClasses (scheduling.k8s.io/v1), which rank workloads.

Kubernetes has two built-in classes, whose names are reserved.
"""

from typing import Final

import msgspec
from msgspec import Struct

from engine.objects import policies
from events import kube_objects

API_VERSION: Final = "scheduling.k8s.io/v1"
KIND: Final = "PriorityClass"
PREEMPTS: Final = "PreemptLowerPriority"
NEVER: Final = "Never"

_VALUE_MIN: Final = -(2**31)
_VALUE_MAX: Final = 2**31 - 1


class PriorityClass(Struct, frozen=True, gc=False, rename="camel"):
    """A PriorityClass; a higher ``value`` comes first. ``global_default``: it is for workloads that name no class."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str = PREEMPTS


SYSTEM: Final = {
    "system-cluster-critical": PriorityClass(2_000_000_000),
    "system-node-critical": PriorityClass(2_000_001_000),
}

_DECODER: Final = msgspec.json.Decoder(PriorityClass)


def read(api_version: str, kind: str, manifest: msgspec.Raw | bytes) -> PriorityClass | None:
    """Return the PriorityClass in a manifest; None for another kind or an invalid class."""
    if kind != KIND or api_version != API_VERSION:
        return None
    try:
        priority_class = kube_objects.decoded(
            lambda raw: _DECODER.decode(policies.without_nulls(raw)), manifest
        )
    except msgspec.ValidationError:
        return None
    is_valid = _VALUE_MIN <= priority_class.value <= _VALUE_MAX and priority_class.preemption_policy in {
        PREEMPTS,
        NEVER,
    }
    return priority_class if is_valid else None
