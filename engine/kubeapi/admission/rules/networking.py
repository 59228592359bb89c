"""Validation of Ingresses, NetworkPolicies and ServiceCIDRs, from the published Kubernetes API."""

import ipaddress
from collections.abc import Iterator
from typing import Final, TypeAlias

from engine.kubeapi.admission.rules import pods
from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from events.json_values import Json, as_object, as_text, list_at, object_at, objects_at
from events.kube_objects import KubeObject

_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_RANGES_MAX: Final = 2
_CIDR_WORDS: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def ingress(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    rules, default = objects_at(spec, "rules"), as_object(spec.get("defaultBackend"))
    if not rules and default is None:
        yield causes.invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if default is not None:
        yield from _backend(default, "spec.defaultBackend")
    for index, entry in enumerate(objects_at(spec, "tls")):
        for number, host in enumerate(list_at(entry, "hosts")):
            yield from _host(str(host), f"spec.tls[{index}].hosts[{number}]")
    for index, rule in enumerate(rules):
        yield from _rule(rule, f"spec.rules[{index}]")
    name = spec.get("ingressClassName")
    if isinstance(name, str):
        yield from words.each_invalid("spec.ingressClassName", name, words.subdomain_faults(name))


def network_policy(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    yield from words.selector(spec.get("podSelector"), "spec.podSelector")
    for way, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(objects_at(spec, way)):
            where = f"spec.{way}[{index}]"
            for number, port in enumerate(objects_at(rule, "ports")):
                yield from _policy_port(port, f"{where}.ports[{number}]")
            for number, peer in enumerate(objects_at(rule, peers)):
                yield from _peer(peer, f"{where}.{peers}[{number}]")
    for index, policy_type in enumerate(list_at(spec, "policyTypes")):
        if policy_type not in ("Ingress", "Egress"):
            yield causes.unsupported(f"spec.policyTypes[{index}]", policy_type, ("Ingress", "Egress"))


def service_cidr(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    """Yield the errors of a ServiceCIDR; a second range may be added later, for the other IP version."""
    ranges = value.list_at("spec", "cidrs")
    before = ranges if live is None else live.list_at("spec", "cidrs")
    if not ranges:
        yield causes.required("spec.cidrs", "at least one CIDR required")
    for index, item in enumerate(ranges):
        if _network(item) is None:
            yield causes.invalid(f"spec.cidrs[{index}]", item, _CIDR_WORDS)
    if [network.version for item in ranges if (network := _network(item))] in ([4, 4], [6, 6]):
        detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        yield causes.invalid("spec.cidrs", ranges, detail)
    if len(ranges) > _RANGES_MAX:
        yield causes.invalid("spec.cidrs", ranges, "may only hold up to 2 values")
    if len(ranges) < len(before):
        yield causes.invalid("spec.cidrs", ranges, words.IMMUTABLE)
    for index, (old, new) in enumerate(zip(before, ranges, strict=False)):
        if old != new:
            yield causes.invalid(f"spec.cidrs[{index}]", new, words.IMMUTABLE)


def _host(host: str, path: str) -> Iterator[Cause]:
    faults = _wildcard_faults(host) if "*" in host else words.subdomain_faults(host)
    yield from words.each_invalid(path, host, faults)


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
    fields = as_object(rule.get("http"))
    if fields is None:
        return
    listed = objects_at(fields, "paths")
    if not listed:
        yield causes.required(f"{path}.http.paths")
    for index, http_path in enumerate(listed):
        where = f"{path}.http.paths[{index}]"
        yield from _path(str(http_path.get("path") or ""), http_path.get("pathType"), where)
        yield from _backend(object_at(http_path, "backend"), f"{where}.backend")


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
    fields = as_object(backend.get("service"))
    if fields is None and backend.get("resource") is None:
        yield causes.invalid(path, "", "resource or service backend is required")
    if fields is None:
        return
    yield from words.required(f"{path}.service.name", as_text(fields.get("name")), words.old_label_faults)
    port = object_at(fields, "port")
    number, named = port.get("number") or 0, port.get("name") or ""
    if number and named:
        yield causes.invalid(path, "", "cannot set both port name & port number")
    elif named:
        yield from words.each_invalid(f"{path}.service.port.name", named, words.port_name_faults(str(named)))
    elif number:
        yield from words.port(number, f"{path}.service.port.number")
    else:
        yield causes.required(path, "port name or number is required")


def _policy_port(policy_port: Json, path: str) -> Iterator[Cause]:
    yield from words.one_of(policy_port, "protocol", path, pods.PROTOCOLS)
    port, end = policy_port.get("port"), policy_port.get("endPort")
    if port is not None:
        yield from words.port_or_name(port, f"{path}.port")
    if end is None:
        return
    if isinstance(port, str):
        yield causes.invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
    elif port is None:
        yield causes.invalid(f"{path}.endPort", end, "must be specified when `port` is specified")
    else:
        if words.is_number(port) and words.is_number(end) and end < port:
            yield causes.invalid(f"{path}.endPort", end, "must be greater than or equal to `port`")
        yield from words.port(end, f"{path}.endPort")


def _peer(peer: Json, path: str) -> Iterator[Cause]:
    block = as_object(peer.get("ipBlock"))
    if not peer:
        yield causes.required(path, "must specify a peer")
    for name in ("podSelector", "namespaceSelector"):
        yield from words.selector(peer.get(name), f"{path}.{name}")
    if block is None:
        return
    if len(peer) > 1:
        yield causes.forbidden(path, "may not specify both ipBlock and another peer")
    whole = _network(block.get("cidr"))
    if whole is None:
        yield causes.invalid(f"{path}.ipBlock.cidr", block.get("cidr"), _CIDR_WORDS)
    for index, excluded in enumerate(list_at(block, "except")):
        where, part = f"{path}.ipBlock.except[{index}]", _network(excluded)
        if part is None:
            yield causes.invalid(where, excluded, _CIDR_WORDS)
        elif whole is not None and (
            whole.version != part.version
            or whole.prefixlen >= part.prefixlen
            or part.network_address not in whole
        ):
            yield causes.invalid(where, excluded, "must be a strict subset of `cidr`")


def _network(text: object) -> _Network | None:
    """Return a network in the notation ``address/length``, the only one that Kubernetes takes; None for others."""
    address, slash, length = str(text).partition("/")
    if not slash or not (length.isascii() and length.isdecimal()) or "%" in address:
        return None
    try:
        return ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        return None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
