"""Table columns of nodes, namespaces, events, services, ConfigMaps, Secrets and RBAC kinds."""

from collections.abc import Mapping
from typing import Final

from engine.kubeapi.conversion import kubernetes_events
from engine.kubeapi.tables.columns.cells import (
    AGE,
    CREATED,
    NAME,
    NONE,
    Column,
    at,
    condition,
    count,
    fields,
    first,
    flag,
    items,
    joined,
    length,
    number,
    pairs,
    selector,
    text,
    text_at,
    wide,
)
from engine.kubeapi.values import ages
from events.json_values import as_count, as_text
from events.kube_objects import KubeObject

_ROLE_LABEL: Final = "node-role.kubernetes.io/"
_ROLE_NAME: Final = "kubernetes.io/role"
"""Label with one role as its value; the labels that begin with ``_ROLE_LABEL`` have the role in their key."""


def _size(*paths: str) -> Column:
    return text("Data", lambda value, _now: sum(len(fields(value, path)) for path in paths))


def _node_status(value: KubeObject, _now: int) -> str:
    ready = condition(value, "Ready")
    status = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if at(value, "spec.unschedulable") is True else status


def _node_roles(value: KubeObject, _now: int) -> str:
    roles = {name.removeprefix(_ROLE_LABEL) for name in value.labels if name.startswith(_ROLE_LABEL)}
    return joined(sorted((roles | {str(value.labels.get(_ROLE_NAME, ""))}) - {""}))


def _address(kind: str) -> Column:
    def read(value: KubeObject, _now: int) -> str:
        addresses = items(value, "status.addresses")
        return next(
            (as_text(address.get("address")) for address in addresses if address.get("type") == kind), NONE
        )

    return text("Internal-IP" if kind == "InternalIP" else "External-IP", read)


def _external(value: KubeObject, _now: int) -> str:
    kind, named = value.text_at("spec", "type"), value.list_at("spec", "externalIPs")
    if kind == "ExternalName":
        return value.text_at("spec", "externalName") or NONE
    if kind != "LoadBalancer":
        return joined(named)
    return joined([*_balancers(value), *named], "<pending>")


def _balancers(value: KubeObject) -> list[str]:
    """Return the addresses of a load balancer, in order."""
    ingresses = items(value, "status.loadBalancer.ingress")
    return sorted({as_text(ingress.get("ip") or ingress.get("hostname")) for ingress in ingresses} - {""})


def _ports(value: KubeObject, _now: int) -> str:
    texts: list[str] = []
    for port in items(value, "spec.ports"):
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}")
    return joined(texts)


def _hosts(value: KubeObject, _now: int) -> str:
    return first([str(host) for rule in items(value, "spec.rules") if (host := rule.get("host"))], "*")


def _subjects(name: str, kind: str) -> Column:
    def read(value: KubeObject, _now: int) -> str:
        chosen = [subject for subject in items(value, "subjects") if subject.get("kind") == kind]
        spaced = kind == "ServiceAccount"
        subjects = (
            f"{subject.get('namespace')}/{subject.get('name')}" if spaced else subject.get("name")
            for subject in chosen
        )
        return ", ".join(str(subject) for subject in subjects)

    return text(name, read)


def _of_event(value: KubeObject, name: str, *below: str) -> object:
    """Return a value of an Event by the name of its field in ``v1``; ``events.k8s.io/v1`` has another name for it."""
    return value.at(name, *below) or value.at(kubernetes_events.NAMES[name], *below)


def _event_object(value: KubeObject, _now: int) -> str:
    kind, name = (as_text(_of_event(value, "involvedObject", field)) for field in ("kind", "name"))
    return f"{kind.lower()}/{name}" if name else kind.lower()


def _event_field(value: KubeObject, _now: int) -> str:
    return as_text(_of_event(value, "involvedObject", "fieldPath"))


def _event_source(value: KubeObject, _now: int) -> str:
    component = _of_event(value, "source", "component") or _of_event(value, "reportingComponent")
    instance = _of_event(value, "source", "host") or value.at("reportingInstance")
    return ", ".join(str(part) for part in (component, instance) if part)


def _first_seen(value: KubeObject, now_ms: int) -> str:
    return ages.since(_of_event(value, "firstTimestamp") or value.at("eventTime"), now_ms)


def _last_seen(value: KubeObject, now_ms: int) -> str:
    stamp = value.at("series", "lastObservedTime") or _of_event(value, "lastTimestamp")
    return ages.since(stamp, now_ms) if stamp else _first_seen(value, now_ms)


def _event_count(value: KubeObject, _now: int) -> int:
    return as_count(value.at("series", "count")) or as_count(_of_event(value, "count")) or 1


def _event_message(value: KubeObject, _now: int) -> str:
    return as_text(_of_event(value, "message")).strip()


_EVENT: Final = (
    text("Last Seen", _last_seen),
    text("Type", text_at("type")),
    text("Reason", text_at("reason")),
    text("Object", _event_object),
    *wide(text("Subobject", _event_field), text("Source", _event_source)),
    text("Message", _event_message),
    *wide(text("First Seen", _first_seen), text("Count", _event_count), NAME),
)
_BINDING: Final = (
    NAME,
    text("Role", lambda value, _now: f"{at(value, 'roleRef.kind')}/{at(value, 'roleRef.name')}"),
    AGE,
    *wide(
        _subjects("Users", "User"),
        _subjects("Groups", "Group"),
        _subjects("ServiceAccounts", "ServiceAccount"),
    ),
)

COLUMNS: Final[Mapping[tuple[str, str], tuple[Column, ...]]] = {
    ("", "Namespace"): (NAME, text("Status", text_at("status.phase")), AGE),
    ("", "Node"): (
        NAME,
        text("Status", _node_status),
        text("Roles", _node_roles),
        AGE,
        text("Version", text_at("status.nodeInfo.kubeletVersion")),
        *wide(
            _address("InternalIP"),
            _address("ExternalIP"),
            text("OS-Image", text_at("status.nodeInfo.osImage", "<unknown>")),
            text("Kernel-Version", text_at("status.nodeInfo.kernelVersion", "<unknown>")),
            text("Container-Runtime", text_at("status.nodeInfo.containerRuntimeVersion", "<unknown>")),
        ),
    ),
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("", "ConfigMap"): (NAME, _size("data", "binaryData"), AGE),
    ("", "Secret"): (NAME, text("Type", text_at("type", "Opaque")), _size("data"), AGE),
    ("", "Service"): (
        NAME,
        text("Type", text_at("spec.type", "ClusterIP")),
        text("Cluster-IP", text_at("spec.clusterIP", NONE)),
        text("External-IP", _external),
        text("Port(s)", _ports),
        AGE,
        *wide(text("Selector", pairs("spec.selector"))),
    ),
    ("", "ServiceAccount"): (NAME, text("Secrets", length("secrets")), AGE),
    ("networking.k8s.io", "Ingress"): (
        NAME,
        text("Class", text_at("spec.ingressClassName", NONE)),
        text("Hosts", _hosts),
        text("Address", lambda value, _now: ",".join(_balancers(value))),
        text("Ports", lambda value, _now: "80, 443" if items(value, "spec.tls") else "80"),
        AGE,
    ),
    ("networking.k8s.io", "NetworkPolicy"): (NAME, text("Pod-Selector", selector("spec.podSelector")), AGE),
    ("policy", "PodDisruptionBudget"): (
        NAME,
        text("Min Available", text_at("spec.minAvailable", "N/A")),
        text("Max Unavailable", text_at("spec.maxUnavailable", "N/A")),
        number("Allowed Disruptions", count("status.disruptionsAllowed")),
        AGE,
    ),
    ("rbac.authorization.k8s.io", "Role"): (NAME, CREATED),
    ("rbac.authorization.k8s.io", "ClusterRole"): (NAME, CREATED),
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (NAME, CREATED),
    ("scheduling.k8s.io", "PriorityClass"): (
        NAME,
        number("Value", count("value")),
        flag("Global-Default", lambda value, _now: value.at("globalDefault") is True),
        AGE,
        text("PreemptionPolicy", text_at("preemptionPolicy", "PreemptLowerPriority")),
    ),
    ("coordination.k8s.io", "Lease"): (NAME, text("Holder", text_at("spec.holderIdentity")), AGE),
}
