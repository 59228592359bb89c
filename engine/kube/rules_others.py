"""What Kubernetes refuses in its kinds that run nothing, and which changes of them. Facts of its published API."""

import base64
import binascii
import ipaddress
from collections.abc import Iterator
from typing import Final

import msgspec

from engine.kube import causes, rules_pods
from engine.kube import rule_words as words
from engine.kube.schemas import Json, as_list, as_object, as_objects
from engine.kube.statuses import Cause
from engine.objects import quantity

_DATA_BYTES_MAX: Final = 1024 * 1024
_RIGHTS: Final = "rbac.authorization.k8s.io"
_PRIORITY_MAX: Final = 1_000_000_000
_DAY_S: Final = 86_400
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


def config_map(value: Json, live: Json | None) -> Iterator[Cause]:
    """A ConfigMap."""
    data, binary = as_object(value.get("data")) or {}, as_object(value.get("binaryData")) or {}
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
        yield causes.too_long("", _DATA_BYTES_MAX)
    yield from _unchanged(value, live, ("data", "binaryData"))


def secret(value: Json, live: Json | None) -> Iterator[Cause]:
    """A Secret; texts under ``stringData`` count as data."""
    data: Json = {**(as_object(value.get("data")) or {}), **(as_object(value.get("stringData")) or {})}
    for key in sorted(data):
        yield from words.key_causes(f"data[{key}]", key)
    if sum(len(_bytes(text)) for text in data.values()) > _DATA_BYTES_MAX:
        yield causes.too_long("data", _DATA_BYTES_MAX)
    sort = str(value.get("type") or "Opaque")
    yield from _needed(value, data, sort)
    if live is not None and sort != str(live.get("type") or "Opaque"):
        yield causes.invalid("type", sort, words.IMMUTABLE)
    yield from _unchanged(value, live, ("data",))


def service(value: Json, live: Json | None) -> Iterator[Cause]:
    """A Service."""
    spec = _spec(value)
    sort, ports = spec.get("type"), as_objects(spec.get("ports"))
    if not ports and spec.get("clusterIP") != "None" and sort != "ExternalName":
        yield causes.required("spec.ports")
    if sort == "ExternalName":
        name = str(spec.get("externalName") or "")
        if name:
            yield from words.each_invalid("spec.externalName", name, words.subdomain_faults(name.rstrip(".")))
        else:
            yield causes.required("spec.externalName")
    yield from _ports(ports, str(sort))
    yield from words.labels(spec.get("selector"), "spec.selector")
    yield from words.one_of(spec, "sessionAffinity", "spec", ("ClientIP", "None"))
    sticky = as_object((as_object(spec.get("sessionAffinityConfig")) or {}).get("clientIP"))
    seconds = (sticky or {}).get("timeoutSeconds")
    if (
        spec.get("sessionAffinity") == "ClientIP"
        and words.is_number(seconds)
        and not 0 < int(str(seconds)) <= _DAY_S
    ):
        where = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
        yield causes.invalid(where, seconds, f"must be greater than 0 and less than {_DAY_S}")
    family = ("PreferDualStack", "RequireDualStack", "SingleStack")
    yield from words.one_of(spec, "ipFamilyPolicy", "spec", family)
    cluster = spec.get("clusterIP")
    if isinstance(cluster, str) and cluster not in ("", "None") and sort != "ExternalName":
        yield from rules_pods.address(cluster, "spec.clusterIPs[0]")
    for place, each in enumerate(as_list(spec.get("externalIPs")) or []):
        yield from rules_pods.address(each, f"spec.externalIPs[{place}]")
    yield from words.one_of(spec, "type", "spec", ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"))
    policy = spec.get("externalTrafficPolicy")
    if policy and sort == "ClusterIP" and not spec.get("externalIPs"):
        detail = "may only be set for externally-accessible services"
        yield causes.invalid("spec.externalTrafficPolicy", policy, detail)
    before = _spec(live or {}).get("clusterIP")
    if before and cluster and before != cluster:
        yield causes.invalid("spec.clusterIPs[0]", [cluster], "may not change once set")


def ingress(value: Json, _live: Json | None) -> Iterator[Cause]:
    """An Ingress."""
    spec = _spec(value)
    rules, default = as_objects(spec.get("rules")), as_object(spec.get("defaultBackend"))
    if not rules and default is None:
        yield causes.invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if default is not None:
        yield from _backend(default, "spec.defaultBackend")
    for place, each in enumerate(as_objects(spec.get("tls"))):
        for number, host in enumerate(as_list(each.get("hosts")) or []):
            yield from _host(str(host), f"spec.tls[{place}].hosts[{number}]")
    for place, rule in enumerate(rules):
        yield from _rule(rule, f"spec.rules[{place}]")
    name = spec.get("ingressClassName")
    if isinstance(name, str):
        yield from words.each_invalid("spec.ingressClassName", name, words.subdomain_faults(name))


def network_policy(value: Json, _live: Json | None) -> Iterator[Cause]:
    """A NetworkPolicy."""
    spec = _spec(value)
    yield from words.selector(spec.get("podSelector"), "spec.podSelector")
    for way, peers in (("ingress", "from"), ("egress", "to")):
        for place, rule in enumerate(as_objects(spec.get(way))):
            where = f"spec.{way}[{place}]"
            for number, each in enumerate(as_objects(rule.get("ports"))):
                yield from _policy_port(each, f"{where}.ports[{number}]")
            for number, peer in enumerate(as_objects(rule.get(peers))):
                yield from _peer(peer, f"{where}.{peers}[{number}]")
    for place, sort in enumerate(as_list(spec.get("policyTypes")) or []):
        if sort not in ("Ingress", "Egress"):
            yield causes.unsupported(f"spec.policyTypes[{place}]", sort, ("Ingress", "Egress"))


def disruption_budget(value: Json, _live: Json | None) -> Iterator[Cause]:
    """A PodDisruptionBudget."""
    spec = _spec(value)
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield causes.whole("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name, held in (("minAvailable", least), ("maxUnavailable", most)):
        yield from words.amount(held, f"spec.{name}")
        yield from words.at_most_all(held, f"spec.{name}")
    yield from words.selector(spec.get("selector"), "spec.selector")
    yield from words.one_of(spec, "unhealthyPodEvictionPolicy", "spec", ("AlwaysAllow", "IfHealthyBudget"))


def autoscaler(value: Json, _live: Json | None) -> Iterator[Cause]:
    """A HorizontalPodAutoscaler."""
    spec = _spec(value)
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if words.is_number(least) and int(str(least)) < 1:
        yield causes.invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if words.is_number(most) and int(str(most)) < 1:
        yield causes.invalid("spec.maxReplicas", most, "must be greater than 0")
    if words.is_number(least) and words.is_number(most) and int(str(most)) < int(str(least)):
        yield causes.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target = as_object(spec.get("scaleTargetRef")) or {}
    for name in ("kind", "name"):
        text = str(target.get(name) or "")
        where = f"spec.scaleTargetRef.{name}"
        if not text:
            yield causes.required(where)
        yield from words.each_invalid(where, text, words.segment_faults(text))


def claim(value: Json, live: Json | None) -> Iterator[Cause]:
    """A PersistentVolumeClaim."""
    spec = _spec(value)
    modes = as_list(spec.get("accessModes")) or []
    if not modes:
        yield causes.required("spec.accessModes", "at least 1 access mode is required")
    known = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
    for mode in modes:
        if mode not in known:
            yield causes.unsupported("spec.accessModes", mode, known)
    asked = as_object((as_object(spec.get("resources")) or {}).get("requests")) or {}
    if "storage" not in asked:
        yield causes.required("spec.resources[storage]")
    elif not _is_positive(asked["storage"]):
        yield causes.invalid("spec.resources[storage]", asked["storage"], "must be greater than zero")
    name = spec.get("storageClassName")
    if isinstance(name, str) and name:
        yield from words.each_invalid("spec.storageClassName", name, words.subdomain_faults(name))
    yield from words.one_of(spec, "volumeMode", "spec", ("Block", "Filesystem"))
    if live is not None and _spec(live) != spec:
        yield causes.forbidden("spec", _CLAIM_WORDS)


def priority_class(value: Json, live: Json | None) -> Iterator[Cause]:
    """A PriorityClass."""
    name = str((as_object(value.get("metadata")) or {}).get("name", ""))
    is_systems = name in ("system-node-critical", "system-cluster-critical")
    number = value.get("value")
    if name.startswith("system-") and not is_systems:
        detail = (
            "priority class names with 'system-' prefix are reserved for system use only."
            f" error: {name} is not a known system priority class"
        )
        yield causes.forbidden("metadata.name", detail)
    elif words.is_number(number) and int(str(number)) > _PRIORITY_MAX and not is_systems:
        detail = f"maximum allowed value of a user defined priority is {_PRIORITY_MAX}"
        yield causes.forbidden("value", detail)
    yield from words.one_of(value, "preemptionPolicy", "", ("PreemptLowerPriority", "Never"))
    if live is not None and (live.get("value") or 0) != (number or 0):
        yield causes.forbidden("value", "may not be changed in an update.")


def role(value: Json, _live: Json | None) -> Iterator[Cause]:
    """A Role or a ClusterRole."""
    is_namespaced = value.get("kind") == "Role"
    for place, rule in enumerate(as_objects(value.get("rules"))):
        where, paths = f"rules[{place}]", as_list(rule.get("nonResourceURLs")) or []
        if not rule.get("verbs"):
            yield causes.required(f"{where}.verbs", "verbs must contain at least one value")
        if paths and is_namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            yield causes.invalid(f"{where}.nonResourceURLs", paths, detail)
        if paths:
            continue
        if not rule.get("apiGroups"):
            yield causes.required(f"{where}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield causes.required(f"{where}.resources", "resource rules must supply at least one resource")
    union = as_object(value.get("aggregationRule"))
    if union is not None and not union.get("clusterRoleSelectors"):
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield causes.required("aggregationRule.clusterRoleSelectors", detail)


def role_binding(value: Json, live: Json | None) -> Iterator[Cause]:
    """A RoleBinding or a ClusterRoleBinding."""
    ref = as_object(value.get("roleRef")) or {}
    if ref.get("apiGroup", _RIGHTS) != _RIGHTS:
        yield causes.unsupported("roleRef.apiGroup", ref["apiGroup"], (_RIGHTS,))
    choices = ("Role", "ClusterRole") if value.get("kind") == "RoleBinding" else ("ClusterRole",)
    if ref.get("kind", "") not in choices:
        yield causes.unsupported("roleRef.kind", ref.get("kind", ""), choices)
    name = str(ref.get("name") or "")
    if not name:
        yield causes.required("roleRef.name")
    yield from words.each_invalid("roleRef.name", name, words.segment_faults(name))
    for place, subject in enumerate(as_objects(value.get("subjects"))):
        yield from _subject(subject, f"subjects[{place}]")
    before = as_object((live or {}).get("roleRef"))
    if before is not None and before != ref:
        shown = {"APIGroup": ref.get("apiGroup", ""), "Kind": ref.get("kind", ""), "Name": name}
        yield causes.invalid("roleRef", shown, "cannot change roleRef")


def _subject(subject: Json, path: str) -> Iterator[Cause]:
    name, sort, group = str(subject.get("name") or ""), subject.get("kind"), subject.get("apiGroup") or ""
    if not name:
        yield causes.required(f"{path}.name")
    match sort:
        case "ServiceAccount":
            if group:
                yield causes.unsupported(f"{path}.apiGroup", group, ("",))
        case "User" | "Group":
            if group != _RIGHTS:
                yield causes.unsupported(f"{path}.apiGroup", group, (_RIGHTS,))
        case _:
            yield causes.unsupported(f"{path}.kind", sort, ("ServiceAccount", "User", "Group"))


def _ports(ports: list[Json], sort: str) -> Iterator[Cause]:
    names: set[str] = set()
    seen: set[tuple[object, object]] = set()
    for place, each in enumerate(ports):
        where, name = f"spec.ports[{place}]", str(each.get("name") or "")
        if name:
            faults = words.label_faults(name)
            yield from words.each_invalid(f"{where}.name", name, faults)
            if not faults and name in names:
                yield causes.duplicate(f"{where}.name", name)
            names.add(name)
        elif len(ports) > 1:
            yield causes.required(f"{where}.name")
        yield from words.port(each.get("port"), f"{where}.port")
        yield from words.one_of(each, "protocol", where, rules_pods.PROTOCOLS)
        yield from words.port_or_name(each.get("targetPort"), f"{where}.targetPort")
        if each.get("nodePort") and sort == "ClusterIP":
            yield causes.forbidden(f"{where}.nodePort", "may not be used when `type` is 'ClusterIP'")
    for place, each in enumerate(ports):
        key = (each.get("protocol"), each.get("port"))
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield _duplicate(f"spec.ports[{place}]", shown)
        seen.add(key)


def _host(host: str, path: str) -> Iterator[Cause]:
    found = _wildcard_faults(host) if "*" in host else words.subdomain_faults(host)
    yield from words.each_invalid(path, host, found)


def _wildcard_faults(host: str) -> list[str]:
    rest = host.removeprefix("*.")
    if rest != host and not words.subdomain_faults(rest):
        return []
    words_of_it = (
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of"
        " lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com',"
        r" regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )
    return [words_of_it]


def _rule(rule: Json, path: str) -> Iterator[Cause]:
    host = str(rule.get("host") or "")
    if host and _is_address(host):
        yield causes.invalid(f"{path}.host", host, "must be a DNS name, not an IP address")
    elif host:
        yield from _host(host, f"{path}.host")
    held = as_object(rule.get("http"))
    if held is None:
        return
    listed = as_objects(held.get("paths"))
    if not listed:
        yield causes.required(f"{path}.http.paths")
    for place, each in enumerate(listed):
        where = f"{path}.http.paths[{place}]"
        yield from _path(str(each.get("path") or ""), each.get("pathType"), where)
        yield from _backend(as_object(each.get("backend")) or {}, f"{where}.backend")


def _path(text: str, sort: object, where: str) -> Iterator[Cause]:
    choices = ("Exact", "ImplementationSpecific", "Prefix")
    if sort is None:
        yield causes.required(f"{where}.pathType", "pathType must be specified")
    elif sort not in choices:
        yield causes.unsupported(f"{where}.pathType", sort, choices)
    elif sort in ("Exact", "Prefix"):
        if not text.startswith("/"):
            yield causes.invalid(f"{where}.path", text, "must be an absolute path")
        for part in ("//", "/./", "/../", "%2f", "%2F"):
            if part in text:
                yield causes.invalid(f"{where}.path", text, f"must not contain '{part}'")
    elif text and not text.startswith("/"):
        yield causes.invalid(f"{where}.path", text, "must be an absolute path")


def _backend(backend: Json, path: str) -> Iterator[Cause]:
    held = as_object(backend.get("service"))
    if held is None and backend.get("resource") is None:
        yield causes.required(path, "resource or service backend is required")
    if held is None:
        return
    name = str(held.get("name") or "")
    if not name:
        yield causes.required(f"{path}.service.name")
    else:
        yield from words.each_invalid(f"{path}.service.name", name, words.old_label_faults(name))
    port = as_object(held.get("port")) or {}
    number, named = port.get("number") or 0, port.get("name") or ""
    if number and named:
        yield causes.invalid(path, named, "cannot set both port name & port number")
    elif named:
        yield from words.each_invalid(f"{path}.service.port.name", named, words.port_name_faults(str(named)))
    elif number:
        yield from words.port(number, f"{path}.service.port.number")
    else:
        yield causes.required(path, "port name or number is required")


def _policy_port(each: Json, path: str) -> Iterator[Cause]:
    yield from words.one_of(each, "protocol", path, rules_pods.PROTOCOLS)
    port, end = each.get("port"), each.get("endPort")
    if port is not None:
        yield from words.port_or_name(port, f"{path}.port")
    if end is None:
        return
    if isinstance(port, str):
        yield causes.invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
    elif port is None:
        yield causes.invalid(f"{path}.endPort", end, "must be specified when `port` is specified")


def _peer(peer: Json, path: str) -> Iterator[Cause]:
    block = as_object(peer.get("ipBlock"))
    if not peer:
        yield causes.required(path, "must specify a peer")
    if block is None:
        return
    if len(peer) > 1:
        yield causes.forbidden(path, "may not specify both ipBlock and another peer")
    try:
        ipaddress.ip_network(str(block.get("cidr")), strict=False)
    except ValueError:
        detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        yield causes.invalid(f"{path}.ipBlock.cidr", block.get("cidr"), detail)


def _needed(value: Json, data: Json, sort: str) -> Iterator[Cause]:
    for key in _NEEDED_OF_SECRETS.get(sort, ()):
        if key not in data:
            yield causes.required(f"data[{key}]")
        elif key.startswith(".docker"):
            yield from _docker(key, _bytes(data[key]))
    if sort == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        yield causes.required("data[username]")
        yield causes.required("data[password]")
    if sort == "kubernetes.io/service-account-token":
        marks = as_object((as_object(value.get("metadata")) or {}).get("annotations")) or {}
        if not marks.get("kubernetes.io/service-account.name"):
            yield causes.required("metadata.annotations[kubernetes.io/service-account.name]")


def _docker(key: str, content: bytes) -> Iterator[Cause]:
    try:
        msgspec.json.decode(content)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        detail = "invalid JSON"
        if content[:1] and content[:1] not in b'{["0123456789-tfn':
            detail = f"invalid character '{content[:1].decode('latin-1')}' looking for beginning of value"
        yield causes.invalid(f"data[{key}]", "<secret contents redacted>", detail)


def _unchanged(value: Json, live: Json | None, names: tuple[str, ...]) -> Iterator[Cause]:
    """What is immutable stays as it is."""
    if live is None or live.get("immutable") is not True:
        return
    detail = "field is immutable when `immutable` is set"
    if value.get("immutable") is not True:
        yield causes.forbidden("immutable", detail)
    for name in names:
        if (live.get(name) or {}) != (value.get(name) or {}):
            yield causes.forbidden(name, detail)


def _duplicate(path: str, value: object) -> Cause:
    message = f"Duplicate value: {msgspec.json.encode(value).decode()}"
    return Cause(field=path, reason="FieldValueDuplicate", message=message)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_positive(value: object) -> bool:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return True
    try:
        return quantity.nano_units(value) > 0
    except quantity.QuantityError:
        return True


def _bytes(text: object) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except (binascii.Error, ValueError):
        return str(text).encode()


def _spec(value: Json) -> Json:
    return as_object(value.get("spec")) or {}
