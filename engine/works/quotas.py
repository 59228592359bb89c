"""ResourceQuotas: what a quota limits, and how much of that a pod uses."""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from engine.kubeapi.values import quantity
from engine.kubeapi.values.selectors import Operator
from engine.works.amounts import Amounts
from events.json_values import Json, object_at, objects_at, texts

KIND: Final = "ResourceQuota"
PODS: Final = ("pods", "count/pods")
_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")


class Scope(Struct, frozen=True):
    """One condition on the pods that a quota counts."""

    name: str
    operator: str = Operator.EXISTS
    values: tuple[str, ...] = ()


class Pod(Struct, frozen=True, gc=False):
    """Facts of a pod by which scopes select it."""

    is_best_effort: bool
    is_terminating: bool = False
    priority_class: str = ""


class Quota(Struct, frozen=True):
    """The hard limits of a quota: amounts as written, and in billionths; and the scopes of the pods that it counts."""

    texts: dict[str, str]
    hard: dict[str, int]
    scopes: tuple[Scope, ...] = ()

    def counts(self, pod: Pod) -> bool:
        """Whether the quota counts a pod, that is, whether the pod is in all scopes of the quota."""
        return all(_is_in(scope, pod) for scope in self.scopes)


def _is_in(scope: Scope, pod: Pod) -> bool:
    match scope.name:
        case "BestEffort" | "NotBestEffort":
            return pod.is_best_effort == (scope.name == "BestEffort")
        case "Terminating" | "NotTerminating":
            return pod.is_terminating == (scope.name == "Terminating")
        case "PriorityClass":
            return _has_class(scope, pod.priority_class)
        case _:
            return False


def _has_class(scope: Scope, name: str) -> bool:
    match scope.operator:
        case Operator.IN:
            return name in scope.values
        case Operator.NOT_IN:
            return name not in scope.values
        case Operator.DOES_NOT_EXIST:
            return not name
        case _:
            return bool(name)


def read(manifest: bytes | msgspec.Raw) -> Quota | None:
    """Return the quota in a manifest; None if it can't be read."""
    try:
        spec = object_at(msgspec.json.decode(manifest), "spec")
    except (msgspec.MsgspecError, RecursionError):
        return None
    amounts = {name: quantity.nano_units_of(text) for name, text in object_at(spec, "hard").items()}
    hard = {name: nano for name, nano in amounts.items() if nano is not None}
    return Quota(
        {name: str(text) for name, text in object_at(spec, "hard").items()}, hard, tuple(_scopes(spec))
    )


def _scopes(spec: Json) -> Iterator[Scope]:
    yield from map(Scope, texts(spec.get("scopes")))
    for expression in objects_at(spec, "scopeSelector", "matchExpressions"):
        values = tuple(texts(expression.get("values")))
        yield Scope(str(expression.get("scopeName")), str(expression.get("operator")), values)


def requested(resource: str) -> str:
    """Return the pod resource that a quota entry limits, such as cpu for ``requests.cpu``; empty if there is none."""
    if resource in PODS:
        return PODS[0]
    name = resource.removeprefix(_REQUESTS)
    return name if name in _COMPUTE or ("/" in name and name != resource) else ""


def use_of_pod(resource: str, requests: Amounts, limits: Amounts) -> int | None:
    """Return what a pod uses of a limited resource, in billionths; None for a resource that pods do not use."""
    if resource in PODS:
        return quantity.NANO
    if resource.startswith(_LIMITS):
        return dict(limits).get(resource.removeprefix(_LIMITS), 0)
    name = requested(resource)
    return dict(requests).get(name, 0) if name else None
