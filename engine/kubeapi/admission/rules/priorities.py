"""Validation of PriorityClasses, from the published Kubernetes API."""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from events.kube_objects import KubeObject

_PRIORITY_MAX: Final = 1_000_000_000


def priority_class(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    name = value.name
    is_systems = name in ("system-node-critical", "system-cluster-critical")
    number = value.at("value")
    if name.startswith("system-") and not is_systems:
        detail = (
            "priority class names with 'system-' prefix are reserved for system use only."
            f" error: {name} is not a known system priority class"
        )
        yield causes.forbidden("metadata.name", detail)
    elif words.is_number(number) and int(str(number)) > _PRIORITY_MAX and not is_systems:
        detail = f"maximum allowed value of a user defined priority is {_PRIORITY_MAX}"
        yield causes.forbidden("value", detail)
    yield from words.one_of(value.document, "preemptionPolicy", "", ("PreemptLowerPriority", "Never"))
    if live is not None and (live.at("value") or 0) != (number or 0):
        yield causes.forbidden("value", "may not be changed in an update.")
