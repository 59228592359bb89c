"""Size of a workload: the number of replicas of a template, and the resource requests of one replica.

Built-in kinds are read as by Karmada, custom kinds by the paths that their interpreter declares. Other kinds
have no replicas.
"""

from typing import Final, cast

import msgspec
from msgspec import Struct

from engine.kubeapi.values import quantity
from engine.objects import interpreters
from events import kube_objects, limits, vocabulary
from events.json_values import as_text, at

_NANO_A_UNIT: Final = 10**9
_NANO_A_MILLI: Final = 10**6

Requests = tuple[tuple[str, str], ...]
"""Resources and Kubernetes quantities, ordered by resource name."""


class Size(Struct, frozen=True, gc=False):
    """Replicas, requests, PriorityClass and node claim of a workload.

    ``replicas`` is None for kinds without replicas, ``requests`` None if a replica has no requirements, and empty if
    it only has requirements of its node.
    ``priority_class`` is the name in the pod template, or empty. ``completions`` are those of a Job, if it has any.
    ``node_claim`` has a replica's requirements of its node, as the JSON text of Karmada's NodeClaim; empty for none.
    """

    replicas: int | None = None
    requests: Requests | None = None
    priority_class: str = ""
    completions: int | None = None
    node_claim: bytes = b""


class _Resources(Struct, frozen=True):
    requests: dict[str, quantity.Quantity] = {}
    limits: dict[str, quantity.Quantity] = {}


class _Container(Struct, frozen=True):
    resources: _Resources = _Resources()


class _PodSpec(Struct, frozen=True, rename="camel"):
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    overhead: dict[str, quantity.Quantity] = {}
    # These four fields and ``completions`` may have any type: no earlier check validates them.
    priority_class_name: object = None
    node_selector: object = None
    tolerations: object = None
    affinity: object = None


class _PodTemplate(Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Spec(Struct, frozen=True):
    replicas: int | None = None
    parallelism: int | None = None
    completions: object = None
    template: _PodTemplate = _PodTemplate()


class _Workload(Struct, frozen=True):
    spec: _Spec = _Spec()


_WORKLOAD: Final = msgspec.json.Decoder(_Workload)
_SINGLE: Final = msgspec.json.Decoder(_PodTemplate)
_BUILT_IN: Final[frozenset[tuple[str, str]]] = frozenset(
    {vocabulary.DEPLOYMENT, vocabulary.REPLICA_SET, ("apps/v1", "StatefulSet"), vocabulary.JOB}
)
NONE: Final = Size()


def is_built_in(api_version: str, kind: str) -> bool:
    """Return whether the kind's replicas are known without an interpreter."""
    return (api_version, kind) in _BUILT_IN or is_single(api_version, kind)


def is_single(api_version: str, kind: str) -> bool:
    """Return whether an object of the kind is a single replica, whose count cannot be set."""
    return (api_version, kind) == vocabulary.POD


def size(api_version: str, kind: str, manifest: msgspec.Raw | bytes) -> Size:
    """Return the size of a built-in workload, NONE for other kinds; an absent count means one replica.

    Raises msgspec.ValidationError or quantity.QuantityError for an invalid manifest.
    """
    if is_single(api_version, kind):
        return _single(1, manifest)
    if (api_version, kind) not in _BUILT_IN:
        return NONE
    spec = kube_objects.decoded(_WORKLOAD.decode, manifest).spec
    completions = None
    if (api_version, kind) == vocabulary.JOB:
        completions = _count(spec.completions)
        count = job_replicas(spec.parallelism, completions)
    else:
        count = 1 if spec.replicas is None else spec.replicas
    pod = spec.template.spec
    claim = _node_claim(pod)
    return Size(count, _requests(pod, claim), as_text(pod.priority_class_name), completions, claim)


def job_replicas(parallelism: int | None, completions: int | None) -> int:
    """Return how many pods of a Job run at once: ``parallelism``, but no more than ``completions``."""
    count = 1 if parallelism is None else parallelism
    return count if completions is None else min(count, completions)


def _count(value: object) -> int | None:
    """Return a value if it is a number of replicas that Kubernetes allows, otherwise None."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= limits.REPLICAS_MAX else None


def _single(count: int, manifest: msgspec.Raw | bytes) -> Size:
    """Return the size of ``count`` replicas of a Pod.

    All requirements are left out if one is invalid: no earlier check validates them.
    """
    try:
        pod = kube_objects.decoded(_SINGLE.decode, manifest).spec
        claim = _node_claim(pod)
        requests = _requests(pod, claim)
        is_valid = all(quantity.nano_units(text) >= 0 for _, text in requests or ())
    except (msgspec.MsgspecError, quantity.QuantityError, RecursionError):
        return Size(count)
    return Size(count, requests, node_claim=claim) if is_valid else Size(count)


def custom_size(manifest: bytes, spec: interpreters.Interpretation) -> Size:
    """Return the size of a custom workload as its interpreter declares it; NONE without a valid count.

    Requests that are not quantities are left out.
    """
    root: object = kube_objects.decoded(msgspec.json.decode, manifest)
    written = _value_at(root, spec.replicas_path)
    count = spec.default_replicas if written is None else _count(written)
    if count is None:
        return NONE
    if not spec.requests_path:
        pod = next(interpreters.pod_specs(root, spec), None)
        return _single(count, msgspec.json.encode({"spec": pod}))
    requests = _value_at(root, spec.requests_path)
    if not isinstance(requests, dict):
        return Size(count, None)
    fields = cast("dict[str, object]", requests)
    texts = sorted((name, str(value)) for name, value in fields.items())
    return Size(count, tuple(pair for pair in texts if quantity.nano_units_of(pair[1]) is not None))


def _value_at(root: object, path: str) -> object:
    return at(root, *path.removeprefix(".").split("."))


def _requests(pod: _PodSpec, claim: bytes) -> Requests | None:
    """Return a pod's requests: the containers' sum or, if larger, the largest init container; plus the overhead.

    Requests of 0 are left out. Without requests the result is None; but empty if the pod has a node claim (``claim``).
    """
    without_requests = () if claim else None
    if len(pod.containers) == 1 and not pod.init_containers and not pod.overhead:
        requests = _container_requests(pod.containers[0]).items()
        return tuple(sorted(pair for pair in requests if quantity.nano_units(pair[1]))) or without_requests
    total = quantity.totals(map(_container_requests, pod.containers))
    for container in pod.init_containers:
        for name, text in _container_requests(container).items():
            total[name] = max(total.get(name, 0), quantity.nano_units(text))
    for name, nano in quantity.totals([pod.overhead]).items():
        total[name] = total.get(name, 0) + nano
    return tuple(sorted((name, _text(nano)) for name, nano in total.items() if nano)) or without_requests


def _node_claim(pod: _PodSpec) -> bytes:
    """Return what a pod requires of its node: a selector, tolerations, a required node affinity; empty for nothing."""
    affinity = at(pod.affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if not (pod.node_selector or pod.tolerations or affinity):
        return b""
    fields = {"hardNodeAffinity": affinity, "nodeSelector": pod.node_selector, "tolerations": pod.tolerations}
    return msgspec.json.encode({name: value for name, value in fields.items() if value})


def _container_requests(container: _Container) -> dict[str, str]:
    """A container's requests; a resource with only a limit requests the limit, as Kubernetes defaults it."""
    resources = container.resources
    return {name: str(value) for name, value in (resources.limits | resources.requests).items()}


def _text(nano: int) -> str:
    """Write billionths as an exact quantity (whole, in ``m`` or in ``n``), or as the largest one that can be parsed."""
    if nano % _NANO_A_UNIT == 0:
        text = str(nano // _NANO_A_UNIT)
    else:
        text = f"{nano // _NANO_A_MILLI}m" if nano % _NANO_A_MILLI == 0 else f"{nano}n"
    return text if len(text) <= quantity.TEXT_CHARS_MAX else "9" * quantity.TEXT_CHARS_MAX
