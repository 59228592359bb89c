"""How big a workload is: how many replicas a template asks for, and what each of them needs.

The built-in kinds are read as the reference reads them; custom kinds by the paths that their interpreter
declares. Other kinds have no replicas.
"""

from typing import Final, cast

import msgspec
from msgspec import Struct

from engine.objects import quantity

_NANO_A_UNIT: Final = 10**9
_NANO_A_MILLI: Final = 10**6

Requests = tuple[tuple[str, str], ...]
"""Resource and Kubernetes quantity, in the order of the resources' names."""


class Size(Struct, frozen=True, gc=False):
    """``replicas`` is absent for kinds without; ``requests`` where a replica has no requirements at all.

    ``priority_class`` is the PriorityClass that its pods name.
    """

    replicas: int | None = None
    requests: Requests | None = None
    priority_class: str = ""


class _Resources(Struct, frozen=True):
    requests: dict[str, quantity.Quantity] = {}
    limits: dict[str, quantity.Quantity] = {}


class _Container(Struct, frozen=True):
    resources: _Resources = _Resources()


class _PodSpec(Struct, frozen=True, rename="camel"):
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    overhead: dict[str, quantity.Quantity] = {}
    priority_class_name: str | None = None


class _PodTemplate(Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Spec(Struct, frozen=True):
    replicas: int | None = None
    parallelism: int | None = None
    template: _PodTemplate = _PodTemplate()


class _Workload(Struct, frozen=True):
    spec: _Spec = _Spec()


_WORKLOAD: Final = msgspec.json.Decoder(_Workload)
_SINGLE: Final = msgspec.json.Decoder(_PodTemplate)
_BUILT_IN: Final = {
    ("apps/v1", "Deployment"): "replicas",
    ("apps/v1", "StatefulSet"): "replicas",
    ("batch/v1", "Job"): "parallelism",
}
NONE: Final = Size()
_POD: Final = ("v1", "Pod")
_REPLICAS: Final = ("spec", "replicas")
_REPLICAS_AT: Final = {("batch/v1", "Job"): ("spec", "parallelism")}

Path = tuple[str, ...]
"""Names of fields, from the root of an object."""


def replicas_path(api_version: str, kind: str, declared: str = "") -> Path:
    """Where objects of a kind say how many replicas they want; ``declared`` is what its interpreter says."""
    if declared:
        return tuple(declared.removeprefix(".").split("."))
    return _REPLICAS_AT.get((api_version, kind), _REPLICAS)


def is_usual(declared: str) -> bool:
    """Whether an interpreter's path is where replicas are looked for anyway."""
    return not declared or replicas_path("", "", declared) == _REPLICAS


def with_field(value: dict[str, object], path: Path, new: object) -> dict[str, object]:
    """The object with another value at a path, made where it is missing; what is given stays as it is."""
    first, *others = path
    held = value.get(first)
    inner = cast("dict[str, object]", held) if isinstance(held, dict) else {}
    return {**value, first: with_field(inner, tuple(others), new) if others else new}


def field_at(value: object, path: Path) -> object:
    """What stands at a path; None where it leads nowhere."""
    for part in path:
        if not isinstance(value, dict):
            return None
        value = cast("dict[str, object]", value).get(part)
    return value


def is_built_in(api_version: str, kind: str) -> bool:
    """Whether the kind's replicas are read without an interpreter."""
    return (api_version, kind) in _BUILT_IN or is_single(api_version, kind)


def is_single(api_version: str, kind: str) -> bool:
    """Whether an object of the kind is one replica itself, so that none can be set in it."""
    return (api_version, kind) == _POD


def size(api_version: str, kind: str, manifest: msgspec.Raw | bytes) -> Size:
    """The size of a built-in workload, NONE for other kinds; an absent count means one replica, as a Pod is.

    Raises msgspec.ValidationError or quantity.QuantityError for a manifest of the wrong shape.
    """
    if is_single(api_version, kind):
        return Size(1, _single_requests(manifest))
    field = _BUILT_IN.get((api_version, kind))
    if field is None:
        return NONE
    spec = _WORKLOAD.decode(manifest).spec
    count = spec.replicas if field == "replicas" else spec.parallelism
    pod = spec.template.spec
    return Size(1 if count is None else count, _requests(pod), pod.priority_class_name or "")


def _single_requests(manifest: msgspec.Raw | bytes) -> Requests | None:
    """What a Pod needs; its form was never checked where it was taken in, so that what can't be read needs nothing."""
    try:
        found = _requests(_SINGLE.decode(manifest).spec)
        is_sound = all(quantity.nano_units(text) >= 0 for _, text in found or ())
    except (msgspec.MsgspecError, quantity.QuantityError, RecursionError):
        return None
    return found if is_sound else None


def custom_size(manifest: bytes, count_path: str, requests_path: str = "") -> Size:
    """The size of a custom workload, by dotted paths from its root; NONE where the path leads nowhere."""
    root: object = msgspec.json.decode(manifest)
    count = _walk(root, count_path)
    if isinstance(count, bool) or not isinstance(count, int):
        return NONE
    wanted = _walk(root, requests_path) if requests_path else None
    if not isinstance(wanted, dict):
        return Size(count, None)
    found = cast("dict[str, object]", wanted)
    return Size(count, tuple(sorted((name, str(value)) for name, value in found.items())))


def _walk(root: object, path: str) -> object:
    return field_at(root, tuple(path.removeprefix(".").split(".")))


def _requests(pod: _PodSpec) -> Requests | None:
    """What one pod needs: its containers together, or its neediest init container, plus its overhead."""
    if len(pod.containers) == 1 and not pod.init_containers and not pod.overhead:
        only = _asked(pod.containers[0])
        return tuple(sorted(only.items())) or None
    total: dict[str, int] = {}
    for container in pod.containers:
        for name, text in _asked(container).items():
            total[name] = total.get(name, 0) + quantity.nano_units(text)
    for container in pod.init_containers:
        for name, text in _asked(container).items():
            total[name] = max(total.get(name, 0), quantity.nano_units(text))
    for name, text in pod.overhead.items():
        total[name] = total.get(name, 0) + quantity.nano_units(text)
    return tuple(sorted((name, _text(nano)) for name, nano in total.items())) or None


def _asked(container: _Container) -> dict[str, str]:
    """A container's requests; what it only limits, it requests up to the limit, as Kubernetes defaults it."""
    resources = container.resources
    return {name: str(value) for name, value in (resources.limits | resources.requests).items()}


def _text(nano: int) -> str:
    """The shortest exact quantity."""
    if nano % _NANO_A_UNIT == 0:
        return str(nano // _NANO_A_UNIT)
    return f"{nano // _NANO_A_MILLI}m" if nano % _NANO_A_MILLI == 0 else f"{nano}n"
