"""Table columns of quotas, admission, endpoints, classes, revisions, volumes, devices and priority levels."""

from collections.abc import Mapping
from typing import Final

from engine.kubeapi.tables.columns.cells import (
    AGE,
    CREATED,
    NAME,
    NONE,
    UNSET,
    Column,
    Reading,
    at,
    condition,
    count,
    fields,
    first,
    items,
    joined,
    length,
    number,
    pairs,
    text,
    text_at,
    wide,
)
from engine.kubeapi.values import ages, selector_texts
from events import keys
from events.json_values import as_text, list_at, object_at, objects_at
from events.kube_objects import KubeObject

_ADMISSION: Final = "admissionregistration.k8s.io"
_MODES: Final[Mapping[object, str]] = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""Annotation that overrides the class in the spec of a volume or a claim."""


def _quota(name: str, *, limits: bool) -> Column:
    """Column with used and hard amounts: of resources whose names begin with ``limits``, or of all others."""

    def read(value: KubeObject, _now: int) -> str:
        hard, used = fields(value, "status.hard"), fields(value, "status.used")
        return ", ".join(
            f"{resource}: {used.get(resource, 0)}/{most}"
            for resource, most in sorted(hard.items())
            if resource.startswith("limits") == limits
        )

    return text(name, read)


def _endpoints(value: KubeObject, _now: int) -> str:
    subsets = items(value, "subsets")
    result: list[str] = []
    for subset in subsets:
        addresses = [as_text(address.get("ip")) for address in objects_at(subset, "addresses")]
        if ports := [port.get("port") for port in objects_at(subset, "ports")]:
            hosts = [f"[{address}]" if ":" in address else address for address in addresses]
            result += [f"{host}:{port}" for port in ports for host in hosts]
        else:
            result += addresses
    return first(result, "" if subsets else NONE)


def _slice_ports(value: KubeObject, _now: int) -> str:
    return first([str(port.get("port", port.get("name", "*"))) for port in items(value, "ports")], UNSET)


def _slice_addresses(value: KubeObject, _now: int) -> str:
    endpoints = items(value, "endpoints")
    return first(
        [str(address) for endpoint in endpoints for address in list_at(endpoint, "addresses")], UNSET
    )


def _parameters(value: KubeObject, _now: int) -> str:
    parameters = fields(value, "spec.parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
    return f"{parameters.get('kind')}{group}/{parameters.get('name')}"


def _controller(value: KubeObject, _now: int) -> str:
    for owner in items(value, "metadata.ownerReferences"):
        if owner.get("controller") is True:
            resource = keys.resource_name(str(owner.get("apiVersion")), str(owner.get("kind")))
            return f"{resource}/{owner.get('name')}"
    return NONE


def _parameter_kind(value: KubeObject, _now: int) -> str:
    kind = fields(value, "spec.paramKind")
    return f"{kind.get('apiVersion')}/{kind.get('kind')}" if kind else UNSET


def _parameter(value: KubeObject, _now: int) -> str:
    reference = fields(value, "spec.paramRef")
    if name := reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{name}"
    return selector_texts.of(object_at(reference, "selector")) or UNSET


def _of_template(name: str, field: str) -> Column:
    return text(
        name,
        lambda value, _now: joined(
            (container.get(field, "") for container in items(value, "template.spec.containers")), ""
        ),
    )


def _duration(value: KubeObject, _now: int) -> str:
    seconds = at(value, "spec.expirationSeconds")
    return ages.duration(seconds) if isinstance(seconds, int) else NONE


def _decision(value: KubeObject, _now: int) -> str:
    """Cell: the state of a certificate signing request, such as ``Pending`` or ``Approved,Issued``."""
    kinds = [condition.get("type") for condition in items(value, "status.conditions")]
    decision = next((kind for kind in ("Denied", "Approved") if kind in kinds), "Pending")
    failed = ",Failed" if "Failed" in kinds else ""
    return f"{decision}{failed}{',Issued' if at(value, 'status.certificate') else ''}"


def _modes(path: str) -> Reading:
    def read(value: KubeObject, _now: int) -> str:
        entries = list_at(at(value, path))
        return joined((short for mode, short in _MODES.items() if mode in entries), "")

    return read


def _if_bound(reading: Reading) -> Reading:
    """Cell function for claims: the cell of ``reading``; empty if the claim has no volume."""
    return lambda value, now_ms: reading(value, now_ms) if at(value, "spec.volumeName") else ""


def _phase(value: KubeObject, _now: int) -> str:
    return "Terminating" if value.is_ending else value.text_at("status", "phase")


def _class(value: KubeObject, _now: int) -> str:
    return as_text(value.annotations.get(_CLASS, at(value, "spec.storageClassName")))


def _claim(value: KubeObject, _now: int) -> str:
    name = at(value, "spec.claimRef.name")
    return f"{at(value, 'spec.claimRef.namespace')}/{name}" if name else ""


def _class_name(value: KubeObject, _now: int) -> str:
    is_default = any(value.annotations.get(name) == "true" for name in _DEFAULT_CLASS)
    return f"{value.name} (default)" if is_default else value.name


def _audiences(value: KubeObject, _now: int) -> str:
    return joined((request.get("audience", "") for request in items(value, "spec.tokenRequests")), UNSET)


def _lives(value: KubeObject, _now: int) -> str:
    return joined(value.list_at("spec", "volumeLifecycleModes") or ["Persistent"])


def _flag(name: str, path: str, *, otherwise: bool = False, kind: str = "boolean") -> Column:
    def read(value: KubeObject, _now: int) -> bool:
        content = at(value, path)
        return otherwise if content is None else content is True

    return Column(name=name, reading=read, type=kind)


def _number(name: str, path: str) -> Column:
    """Column with the number at a path; its cell is a number although its type is string, as in Kubernetes."""
    return text(name, lambda value, _now: NONE if at(value, path) is None else count(path)(value, _now))


def _missing_level(value: KubeObject, _now: int) -> str:
    """Cell: whether the priority level of a FlowSchema is missing; ``?`` if no API server has reported it."""
    return condition(value, "Dangling") or "?"


def _claim_state(value: KubeObject, _now: int) -> str:
    """Cell: the state of a ResourceClaim, such as ``pending`` or ``allocated,reserved``."""
    is_allocated = at(value, "status.allocation") is not None
    states = {
        "deleted": value.is_ending,
        "pending": not (is_allocated or value.is_ending),
        "allocated": is_allocated,
        "reserved": is_allocated and bool(items(value, "status.reservedFor")),
    }
    return joined((state for state, applies in states.items() if applies), "")


_VOLUME_MODE: Final = wide(text("VolumeMode", text_at("spec.volumeMode", UNSET)))
_CLASSES: Final = (
    text("StorageClass", _class),
    text("VolumeAttributesClass", text_at("spec.volumeAttributesClassName", UNSET)),
)

COLUMNS: Final[Mapping[tuple[str, str], tuple[Column, ...]]] = {
    ("", "ResourceQuota"): (NAME, _quota("Request", limits=False), _quota("Limit", limits=True), AGE),
    ("", "LimitRange"): (NAME, CREATED),
    ("", "Endpoints"): (NAME, text("Endpoints", _endpoints), AGE),
    ("discovery.k8s.io", "EndpointSlice"): (
        NAME,
        text("AddressType", text_at("addressType")),
        text("Ports", _slice_ports),
        text("Endpoints", _slice_addresses),
        AGE,
    ),
    ("certificates.k8s.io", "CertificateSigningRequest"): (
        NAME,
        AGE,
        text("SignerName", text_at("spec.signerName")),
        text("Requestor", text_at("spec.username")),
        text("RequestedDuration", _duration),
        text("Condition", _decision),
    ),
    ("", "PodTemplate"): (
        NAME,
        _of_template("Containers", "name"),
        _of_template("Images", "image"),
        text("Pod Labels", pairs("template.metadata.labels")),
    ),
    ("apps", "ControllerRevision"): (
        NAME,
        text("Controller", _controller),
        text("Revision", count("revision")),
        AGE,
    ),
    ("networking.k8s.io", "IngressClass"): (
        NAME,
        text("Controller", text_at("spec.controller")),
        text("Parameters", _parameters),
        AGE,
    ),
    (_ADMISSION, "MutatingWebhookConfiguration"): (NAME, number("Webhooks", length("webhooks")), AGE),
    (_ADMISSION, "ValidatingWebhookConfiguration"): (NAME, number("Webhooks", length("webhooks")), AGE),
    (_ADMISSION, "ValidatingAdmissionPolicy"): (
        NAME,
        number("Validations", length("spec.validations")),
        text("ParamKind", _parameter_kind),
        AGE,
    ),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): (
        NAME,
        text("PolicyName", text_at("spec.policyName")),
        text("ParamRef", _parameter),
        AGE,
    ),
    ("", "PersistentVolume"): (
        NAME,
        text("Capacity", text_at("spec.capacity.storage", "0")),
        text("Access Modes", _modes("spec.accessModes")),
        text("Reclaim Policy", text_at("spec.persistentVolumeReclaimPolicy")),
        text("Status", _phase),
        text("Claim", _claim),
        *_CLASSES,
        text("Reason", text_at("status.reason")),
        AGE,
        *_VOLUME_MODE,
    ),
    ("", "PersistentVolumeClaim"): (
        NAME,
        text("Status", _phase),
        text("Volume", text_at("spec.volumeName")),
        text("Capacity", _if_bound(text_at("status.capacity.storage", "0"))),
        text("Access Modes", _if_bound(_modes("status.accessModes"))),
        *_CLASSES,
        AGE,
        *_VOLUME_MODE,
    ),
    ("storage.k8s.io", "StorageClass"): (
        Column(name="Name", reading=_class_name, format="name"),
        text("Provisioner", text_at("provisioner")),
        text("ReclaimPolicy", text_at("reclaimPolicy", "Delete")),
        text("VolumeBindingMode", text_at("volumeBindingMode", "Immediate")),
        _flag("AllowVolumeExpansion", "allowVolumeExpansion", kind="string"),
        AGE,
    ),
    ("storage.k8s.io", "CSIDriver"): (
        NAME,
        _flag("AttachRequired", "spec.attachRequired", otherwise=True),
        _flag("PodInfoOnMount", "spec.podInfoOnMount"),
        _flag("StorageCapacity", "spec.storageCapacity"),
        text("TokenRequests", _audiences),
        _flag("RequiresRepublish", "spec.requiresRepublish"),
        text("Modes", _lives),
        AGE,
    ),
    ("storage.k8s.io", "CSINode"): (
        NAME,
        number("Drivers", length("spec.drivers")),
        AGE,
    ),
    ("storage.k8s.io", "VolumeAttachment"): (
        NAME,
        Column(name="Attacher", reading=text_at("spec.attacher"), format="name"),
        text("PV", text_at("spec.source.persistentVolumeName")),
        text("Node", text_at("spec.nodeName")),
        _flag("Attached", "status.attached"),
        AGE,
    ),
    ("storage.k8s.io", "CSIStorageCapacity"): (NAME, CREATED),
    ("storage.k8s.io", "VolumeAttributesClass"): (NAME, text("DriverName", text_at("driverName")), AGE),
    ("node.k8s.io", "RuntimeClass"): (NAME, text("Handler", text_at("handler")), AGE),
    ("resource.k8s.io", "ResourceClaim"): (NAME, text("State", _claim_state), AGE),
    ("resource.k8s.io", "ResourceSlice"): (
        NAME,
        text("Node", text_at("spec.nodeName")),
        text("Driver", text_at("spec.driver")),
        text("Pool", text_at("spec.pool.name")),
        AGE,
    ),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): (
        NAME,
        text("PriorityLevel", text_at("spec.priorityLevelConfiguration.name")),
        text("MatchingPrecedence", count("spec.matchingPrecedence")),
        text("DistinguisherMethod", text_at("spec.distinguisherMethod.type", NONE)),
        AGE,
        text("MissingPL", _missing_level),
    ),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): (
        NAME,
        text("Type", text_at("spec.type")),
        _number("NominalConcurrencyShares", "spec.limited.nominalConcurrencyShares"),
        *(
            _number(f"{name[0].upper()}{name[1:]}", f"spec.limited.limitResponse.queuing.{name}")
            for name in ("queues", "handSize", "queueLengthLimit")
        ),
        AGE,
    ),
    ("networking.k8s.io", "ServiceCIDR"): (
        NAME,
        text("CIDRs", lambda value, _now: joined(value.list_at("spec", "cidrs"), "")),
        AGE,
    ),
}
