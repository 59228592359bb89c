"""Rules of ConfigMaps, Secrets, Services, PersistentVolumeClaims and Events, from the published Kubernetes API.

When the type of a Service changes, the fields that only the former type has are dropped: a client that changes the type
usually sends back the other fields as it read them, with defaults and assigned values. Fields that the same request
changes are kept and validated.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Final

import msgspec

from engine.kubeapi.admission.rules import pods
from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.schema import type_errors
from engine.kubeapi.values import quantity, secret_texts
from events import vocabulary
from events.json_values import (
    DECODING_ERRORS,
    Json,
    as_list,
    as_object,
    as_text,
    at,
    list_at,
    object_at,
    objects_at,
)
from events.kube_objects import KubeObject

_CLUSTER_SCOPED_IN: Final = {False: ("default",), True: ("default", "kube-system")}
"""Namespaces of Events about cluster-scoped objects, by whether the Event has an ``eventTime``."""

_TEXT_MAX: Final = {"reportingController": 128, "reportingInstance": 128, "action": 128, "reason": 128}
_NOTE_MAX: Final = 1_024
_FIXED: Final = (
    "action",
    "reason",
    "regarding",
    "related",
    "reportingController",
    "reportingInstance",
    "type",
)
_SPELLED: Final = {"regarding": "involvedObject", "reportingController": "reportingController"}

_DATA_BYTES_MAX: Final = 1024 * 1024
_WITHOUT_BREAKS: Final = str.maketrans("", "", "\r\n")
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_DAY_S: Final = 86_400
NODE_PORTS: Final = range(30_000, 32_768)
"""The default range of node ports of API servers, also of Karmada's."""

_OUTSIDE: Final = "provided port is not in the valid range. The range of valid ports is 30000-32767"
_NEEDED_OF_SECRETS: Final = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
}
_CLAIM_WORDS: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound"
    " claims"
)


def config_map(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    data, binary = value.object_at("data"), value.object_at("binaryData")
    size = 0
    for key, text in sorted(data.items()):
        yield from words.key_causes(f"data[{key}]", key)
        if key in binary:
            yield causes.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(str(text).encode())
    for key, text in sorted(binary.items()):
        yield from words.key_causes(f"binaryData[{key}]", key)
        size += len(_bytes(text))
    if size > _DATA_BYTES_MAX:
        yield causes.too_long("[]", _DATA_BYTES_MAX)
    yield from _unchanged(value, live, ("data", "binaryData"))


def secret(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    """Yield the errors of a Secret; ``stringData`` is validated together with ``data``."""
    data: Json = {**value.object_at("data"), **secret_texts.encoded(value.object_at("stringData"))}
    for key in sorted(data):
        yield from words.key_causes(f"data[{key}]", key)
    if sum(len(_bytes(text)) for text in data.values()) > _DATA_BYTES_MAX:
        yield causes.too_long("data", _DATA_BYTES_MAX)
    type_name = value.text_at("type") or "Opaque"
    yield from _needed(value, data, type_name)
    if live is not None and type_name != (live.text_at("type") or "Opaque"):
        yield causes.invalid("type", type_name, words.IMMUTABLE)
    yield from _unchanged(value.with_fields({"data": data}), live, ("data",))


def service(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    type_name, ports = spec.get("type"), objects_at(spec, "ports")
    if not ports and spec.get("clusterIP") != "None" and type_name != "ExternalName":
        yield causes.required("spec.ports")
    if type_name == "ExternalName":
        name = as_text(spec.get("externalName"))
        yield from words.required(
            "spec.externalName", name, lambda text: words.subdomain_faults(text.rstrip("."))
        )
    yield from _ports(ports, str(type_name))
    yield from words.labels(spec.get("selector"), "spec.selector")
    yield from words.one_of(spec, "sessionAffinity", "spec", ("ClientIP", "None"))
    seconds = at(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds")
    if spec.get("sessionAffinity") == "ClientIP" and words.is_number(seconds) and not 0 < seconds <= _DAY_S:
        where = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        yield causes.invalid(where, seconds, f"must be greater than 0 and less than {_DAY_S}")
    family = ("PreferDualStack", "RequireDualStack", "SingleStack")
    yield from words.one_of(spec, "ipFamilyPolicy", "spec", family)
    cluster = spec.get("clusterIP")
    if isinstance(cluster, str) and cluster not in ("", "None") and type_name != "ExternalName":
        yield from pods.address(cluster, "spec.clusterIPs[0]")
    for index, address in enumerate(list_at(spec, "externalIPs")):
        yield from pods.address(address, f"spec.externalIPs[{index}]")
    yield from words.one_of(spec, "type", "spec", ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"))
    policy = spec.get("externalTrafficPolicy")
    if policy and type_name == "ClusterIP" and not spec.get("externalIPs"):
        detail = "may only be set for externally-accessible services"
        yield causes.invalid("spec.externalTrafficPolicy", policy, detail)
    before = None if live is None else live.at("spec", "clusterIP")
    if before and cluster and before != cluster:
        yield causes.invalid("spec.clusterIPs[0]", [cluster], "may not change once set")


def claim(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    modes = list_at(spec, "accessModes")
    if not modes:
        yield causes.required("spec.accessModes", "at least 1 access mode is required")
    known = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
    for mode in modes:
        if mode not in known:
            yield causes.unsupported("spec.accessModes", mode, known)
    requested = object_at(spec, "resources", "requests")
    size = quantity.nano_units_of(requested.get("storage"))
    if "storage" not in requested:
        yield causes.required("spec.resources[storage]")
    elif size is not None and size <= 0:
        yield causes.invalid("spec.resources[storage]", requested["storage"], "must be greater than zero")
    yield from pods.subdomain(spec.get("storageClassName"), "spec.storageClassName")
    yield from words.one_of(spec, "volumeMode", "spec", ("Block", "Filesystem"))
    if live is not None:
        old = live.object_at("spec")
        former = quantity.nano_units_of(at(old, "resources", "requests", "storage"))
        # A larger request is allowed here. Members refuse it for unbound claims; only they know which are bound.
        if size is not None and former is not None and size < former:
            yield causes.forbidden(
                "spec.resources.requests.storage", "field can not be less than status.capacity"
            )
        once = {name: spec[name] for name in ("storageClassName", "volumeName") if name in spec}
        if _lasting({**once, **old}) != _lasting(spec):
            yield causes.forbidden("spec", _CLAIM_WORDS)


def _lasting(spec: Json) -> Json:
    """Return the spec of a claim without the fields that may change."""
    resources = object_at(spec, "resources")
    requests = {**object_at(resources, "requests"), "storage": None}
    return {**spec, "resources": {**resources, "requests": requests}, "volumeAttributesClassName": None}


def _ports(ports: list[Json], sort: str) -> Iterator[Cause]:
    names: set[str] = set()
    seen: set[str] = set()
    node_ports: set[str] = set()
    for index, port in enumerate(ports):
        where, name = f"spec.ports[{index}]", str(port.get("name") or "")
        if name:
            faults = words.label_faults(name)
            yield from words.each_invalid(f"{where}.name", name, faults)
            if not faults and name in names:
                yield causes.duplicate(f"{where}.name", name)
            names.add(name)
        elif len(ports) > 1:
            yield causes.required(f"{where}.name")
        yield from words.port(port.get("port"), f"{where}.port")
        yield from words.one_of(port, "protocol", where, pods.PROTOCOLS)
        yield from words.port_or_name(port.get("targetPort"), f"{where}.targetPort")
        if number := port.get("nodePort"):
            if sort == "ClusterIP":
                yield causes.forbidden(f"{where}.nodePort", "may not be used when `type` is 'ClusterIP'")
            elif sort in WITH_NODE_PORTS and number not in NODE_PORTS:
                yield causes.invalid(f"{where}.nodePort", number, _OUTSIDE)
            if (key := f"{port.get('protocol')}/{number}") in node_ports:
                yield causes.duplicate(f"{where}.nodePort", number)
            node_ports.add(key)
    for index, port in enumerate(ports):
        protocol, number = port.get("protocol"), port.get("port")
        key = f"{protocol}/{number}"
        if key in seen:
            shown = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": number}
            yield causes.duplicate(f"spec.ports[{index}]", {**shown, "TargetPort": 0, "NodePort": 0})
        seen.add(key)


def _needed(value: KubeObject, data: Json, sort: str) -> Iterator[Cause]:
    for key in _NEEDED_OF_SECRETS.get(sort, ()):
        if key not in data or (key == "ssh-privatekey" and not data[key]):
            yield causes.required(f"data[{key}]")
        elif key.startswith(".docker"):
            yield from _docker(key, _bytes(data[key]))
    if sort == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        yield causes.required("data[username]")
        yield causes.required("data[password]")
    if sort == "kubernetes.io/service-account-token" and not value.annotations.get(ACCOUNT_NAME):
        yield causes.required(f"metadata.annotations[{ACCOUNT_NAME}]")


def _docker(key: str, content: bytes) -> Iterator[Cause]:
    try:
        value = msgspec.json.decode(content)
    except DECODING_ERRORS:
        detail = "invalid JSON" if content else "unexpected end of JSON input"
        if content[:1] not in b'{["0123456789-tfn':
            detail = f"invalid character '{content[:1].decode('latin-1')}' looking for beginning of value"
    else:
        if value is None or as_object(value) is not None:
            return
        json_type = type_errors.json_type_of(value)
        detail = f"json: cannot unmarshal {json_type} into Go value of type map[string]interface {{}}"
    yield causes.invalid(f"data[{key}]", "<secret contents redacted>", detail)


def _unchanged(value: KubeObject, live: KubeObject | None, names: tuple[str, ...]) -> Iterator[Cause]:
    """Yield an error for each changed field of an object with ``immutable: true``."""
    if live is None or live.at("immutable") is not True:
        return
    detail = "field is immutable when `immutable` is set"
    if value.at("immutable") is not True:
        yield causes.forbidden("immutable", detail)
    for name in names:
        if (live.at(name) or {}) != (value.at(name) or {}):
            yield causes.forbidden(name, detail)


def _bytes(text: object) -> bytes:
    try:
        return base64.b64decode(str(text).translate(_WITHOUT_BREAKS), validate=True)
    except (binascii.Error, ValueError):
        return str(text).encode()


def core_event(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    """Yield the errors of an Event of ``v1``."""
    yield from _event_namespace(value, "involvedObject")


def event(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    """Yield the errors of an Event of ``events.k8s.io/v1``."""
    yield from _event_namespace(value, "regarding")
    if live is None:
        if not value.at("eventTime"):
            yield causes.required("eventTime")
        for field, chars_max in _TEXT_MAX.items():
            text = str(value.at(field) or "")
            if not text:
                yield causes.required(field)
            elif len(text) > chars_max:
                yield causes.invalid(field, text, f"can have at most {chars_max} characters")
        yield from words.one_of(value.document, "type", "", ("Normal", "Warning"))
        note = value.text_at("note")
        if len(note) > _NOTE_MAX:
            yield causes.invalid("note", note, f"can have at most {_NOTE_MAX} characters")
        return
    for field in _FIXED:
        if value.at(field) != live.at(field):
            yield causes.invalid(_SPELLED.get(field, field), value.at(field), "field is immutable")


def _event_namespace(value: KubeObject, object_field: str) -> Iterator[Cause]:
    """Yield an error if the Event's namespace differs from its object's; only Events with ``eventTime`` may differ."""
    own, of_object = (value.text_at(part, "namespace") for part in ("metadata", object_field))
    is_newer = bool(value.at("eventTime"))
    if (own != of_object and not is_newer) if of_object else own not in _CLUSTER_SCOPED_IN[is_newer]:
        yield causes.invalid("involvedObject.namespace", of_object, "does not match event.namespace")


_EXTERNAL: Final = "ExternalName"
WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
"""Types of Services whose ports have node ports."""

_OF_ADDRESSES: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
_OF_NODE_PORTS: Final = ("externalTrafficPolicy", "healthCheckNodePort")
_OF_BALANCERS: Final = ("allocateLoadBalancerNodePorts", "loadBalancerClass")


def without_former_type(before: KubeObject | None, value: KubeObject) -> KubeObject:
    """Return the object; from a Service whose type changed, remove the fields that only its former type has.

    Fields that differ from ``before`` are kept. ``before`` is the object before the write, with the API's defaults.
    """
    if before is None or value.type_meta != vocabulary.SERVICE:
        return value
    old, new = before.object_at("spec"), value.object_at("spec")
    type_name = new.get("type") or "ClusterIP"
    if type_name == old.get("type"):
        return value
    former: tuple[str, ...] = ()
    if type_name == _EXTERNAL:
        former += _OF_ADDRESSES
    if type_name not in WITH_NODE_PORTS:
        former += _OF_NODE_PORTS
    if type_name != "LoadBalancer":
        former += _OF_BALANCERS
    spec = {
        name: item for name, item in new.items() if name not in former or name not in old or item != old[name]
    }
    if type_name not in WITH_NODE_PORTS and (ports := as_list(spec.get("ports"))):
        former_ports = list_at(old, "ports")
        numbers = [port.get("nodePort") for item in former_ports if (port := as_object(item)) is not None]
        assigned = {number for number in numbers if isinstance(number, int)}
        spec["ports"] = [_without_node_port(port, assigned) for port in ports]
    return value.with_fields({"spec": spec})


def with_kept_cluster_ip(before: KubeObject, value: KubeObject) -> KubeObject:
    """Return the object; a Service without a cluster IP gets that of ``before``, the stored Service."""
    if value.type_meta != vocabulary.SERVICE:
        return value
    old, new = before.object_at("spec"), value.object_at("spec")
    if new.get("type") == _EXTERNAL or new.get("clusterIP") or not old.get("clusterIP"):
        return value
    kept = {name: old[name] for name in ("clusterIP", "clusterIPs") if name in old}
    return value.with_fields({"spec": {**new, **kept}})


def _without_node_port(value: object, assigned: set[int]) -> object:
    port = as_object(value)
    number = None if port is None else port.get("nodePort")
    if port is None or not isinstance(number, int) or number not in assigned:
        return value
    return {name: item for name, item in port.items() if name != "nodePort"}
