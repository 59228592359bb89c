"""Dependencies of a workload: the objects of its namespace that its manifest refers to.

Read from pod templates (ConfigMaps, Secrets, ServiceAccounts, PersistentVolumeClaims) and from the TLS
section of an Ingress, as by Karmada's default interpreter; optional references are included. The claims
of a StatefulSet's own ``volumeClaimTemplates`` and the ServiceAccount ``default`` are left out, because the
member cluster creates them. Fields of an unexpected type refer to nothing, since the members' API servers
validate templates. This module does not check whether the objects exist.
"""

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from events import vocabulary
from events.json_values import DECODING_ERRORS, at, list_at
from events.shapes import WorkloadRef
from events.validation import names

CONFIG_MAP: Final = "ConfigMap"
SECRET: Final = "Secret"  # noqa: S105  # a kind
SERVICE_ACCOUNT: Final = "ServiceAccount"
VOLUME_CLAIM: Final = "PersistentVolumeClaim"

_API_VERSION: Final = "v1"
DEFAULT_ACCOUNT: Final = "default"

_POD_PATHS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("v1", "Pod"): ("spec",),
    ("apps/v1", "Deployment"): ("spec", "template", "spec"),
    ("apps/v1", "StatefulSet"): ("spec", "template", "spec"),
    ("apps/v1", "DaemonSet"): ("spec", "template", "spec"),
    ("apps/v1", "ReplicaSet"): ("spec", "template", "spec"),
    ("batch/v1", "Job"): ("spec", "template", "spec"),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}
"""Path of the pod spec, by kind."""

CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_SECRET_PATHS: Final = (
    ("azureFile", "secretName"),
    ("secret", "secretName"),
    ("cephfs", "secretRef", "name"),
    ("cinder", "secretRef", "name"),
    ("flexVolume", "secretRef", "name"),
    ("iscsi", "secretRef", "name"),
    ("rbd", "secretRef", "name"),
    ("scaleIO", "secretRef", "name"),
    ("storageos", "secretRef", "name"),
    ("csi", "nodePublishSecretRef", "name"),
)
"""Paths of Secret names in the types of volumes."""

_References = Iterator[tuple[str, object]]


class _Template(Struct, frozen=True):
    spec: msgspec.Raw = msgspec.Raw(b"{}")


_TEMPLATE: Final = msgspec.json.Decoder(_Template)
_DECODE: Final[Callable[[bytes], object]] = msgspec.json.Decoder().decode


def dependencies(
    api_version: str, kind: str, namespace: str, manifest: msgspec.Raw | bytes
) -> tuple[WorkloadRef, ...]:
    """Return the objects that a template refers to, sorted and without repetitions; empty for other kinds."""
    pod_path = _POD_PATHS.get((api_version, kind))
    if not namespace or (pod_path is None and (api_version, kind) != vocabulary.INGRESS):
        return ()
    try:
        # Not the metadata: fields of managers contain backslashes, so nearly every manifest might have references.
        if not _may_refer(bytes(_TEMPLATE.decode(manifest).spec)):
            return ()
        root = _DECODE(bytes(manifest))
    except DECODING_ERRORS:
        return ()
    references = _ingress(root) if pod_path is None else _workload(kind, root, pod_path)
    return ordered(_needed(references, namespace))


def ordered(needed: Iterable[WorkloadRef]) -> tuple[WorkloadRef, ...]:
    """Return references in a total order and without repetitions."""
    return tuple(sorted(set(needed), key=operator.attrgetter("sort_key")))


def of_pod(namespace: str, pod: object) -> Iterator[WorkloadRef]:
    """Yield the objects to which a pod spec refers, in any order and with repetitions."""
    return _needed(_pod(pod), namespace)


def field_of(api_version: str, kind: str) -> str:
    """Return the field in which objects of a kind refer to others; empty for kinds without references."""
    if (api_version, kind) == vocabulary.INGRESS:
        return "spec.tls"
    return ".".join(_POD_PATHS.get((api_version, kind), ()))


def _may_refer(raw: bytes) -> bool:
    """Return False if a spec certainly has no references.

    A fast check of the raw bytes, because most templates have no references and every template is checked. A
    spec with a backslash may have some, since a field name may be escaped.
    """
    return (
        b"ecret" in raw
        or b"configMap" in raw
        or b"claimName" in raw
        or b"serviceAccountName" in raw
        or b"\\" in raw
    )


def _needed(references: _References, namespace: str) -> Iterator[WorkloadRef]:
    for kind, name in references:
        if isinstance(name, str) and names.is_dns_name(name):
            yield WorkloadRef(api_version=_API_VERSION, kind=kind, namespace=namespace, name=name)


def _ingress(root: object) -> _References:
    for entry in list_at(root, "spec", "tls"):
        yield SECRET, at(entry, "secretName")


def _workload(kind: str, root: object, pod_path: tuple[str, ...]) -> _References:
    own_claims = [at(claim, "metadata", "name") for claim in list_at(root, "spec", "volumeClaimTemplates")]
    for dependency_kind, name in _pod(at(root, *pod_path)):
        if not (kind == "StatefulSet" and dependency_kind == VOLUME_CLAIM and name in own_claims):
            yield dependency_kind, name


def _pod(pod: object) -> _References:
    account = at(pod, "serviceAccountName")
    if account != DEFAULT_ACCOUNT:
        yield SERVICE_ACCOUNT, account
    for entry in list_at(pod, "imagePullSecrets"):
        yield SECRET, at(entry, "name")
    for group in CONTAINERS:
        for container in list_at(pod, group):
            yield from _container(container)
    for volume in list_at(pod, "volumes"):
        yield from _volume(volume)


def _container(container: object) -> _References:
    for source in list_at(container, "envFrom"):
        yield CONFIG_MAP, at(source, "configMapRef", "name")
        yield SECRET, at(source, "secretRef", "name")
    for variable in list_at(container, "env"):
        yield CONFIG_MAP, at(variable, "valueFrom", "configMapKeyRef", "name")
        yield SECRET, at(variable, "valueFrom", "secretKeyRef", "name")


def _volume(volume: object) -> _References:
    yield CONFIG_MAP, at(volume, "configMap", "name")
    yield VOLUME_CLAIM, at(volume, "persistentVolumeClaim", "claimName")
    for path in _SECRET_PATHS:
        yield SECRET, at(volume, *path)
    for source in list_at(volume, "projected", "sources"):
        yield CONFIG_MAP, at(source, "configMap", "name")
        yield SECRET, at(source, "secret", "name")
