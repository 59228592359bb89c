"""Table columns of nodes, namespaces, events, services, ConfigMaps, Secrets and RBAC kinds."""

from collections.abc import Mapping
from typing import Final

from engine.kubeapi.tables.columns.cells import (
    AGE,
    CREATED,
    NAME,
    NONE,
    Column,
    at,
    condition,
    count,
    flag,
    items,
    joined,
    number,
    pairs,
    selector,
    text,
    text_at,
    wide,
)
from engine.kubeapi.values import ages
from events.json_values import Json, as_object, list_at, object_at

_ROLE_LABEL: Final = "node-role.kubernetes.io/"


def _size(*paths: str) -> Column:
    return text("Data", lambda value, _now: sum(len(object_at(at(value, path))) for path in paths))


def _node_status(value: Json, _now: int) -> object:
    ready = condition(value, "Ready")
    status = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if at(value, "spec.unschedulable") is True else status


def _node_roles(value: Json, _now: int) -> object:
    labels = object_at(at(value, "metadata.labels"))
    roles = {name.removeprefix(_ROLE_LABEL) for name in labels if name.startswith(_ROLE_LABEL)}
    return joined(sorted(roles - {""}))


def _address(kind: str) -> Column:
    def read(value: Json, _now: int) -> object:
        addresses = items(value, "status.addresses")
        return next((each.get("address") for each in addresses if each.get("type") == kind), NONE)

    return text("Internal-IP" if kind == "InternalIP" else "External-IP", read)


def _external(value: Json, _now: int) -> object:
    kind, named = at(value, "spec.type"), list_at(at(value, "spec.externalIPs"))
    if kind == "ExternalName":
        return at(value, "spec.externalName") or NONE
    if kind != "LoadBalancer":
        return joined(named)
    addresses = [
        each.get("ip") or each.get("hostname") for each in items(value, "status.loadBalancer.ingress")
    ]
    return joined([*filter(None, addresses), *named], "<pending>")


def _ports(value: Json, _now: int) -> object:
    texts: list[str] = []
    for each in items(value, "spec.ports"):
        node = f":{each['nodePort']}" if each.get("nodePort") else ""
        texts.append(f"{each.get('port')}{node}/{each.get('protocol', 'TCP')}")
    return joined(texts)


def _hosts(value: Json, _now: int) -> object:
    return joined((each["host"] for each in items(value, "spec.rules") if each.get("host")), "*")


def _ingress_address(value: Json, _now: int) -> object:
    ingresses = items(value, "status.loadBalancer.ingress")
    return joined((each.get("ip") or each.get("hostname") for each in ingresses), "")


def _subjects(name: str, kind: str) -> Column:
    def read(value: Json, _now: int) -> object:
        chosen = [each for each in items(value, "subjects") if each.get("kind") == kind]
        spaced = kind == "ServiceAccount"
        subjects = (
            f"{each.get('namespace')}/{each.get('name')}" if spaced else each.get("name") for each in chosen
        )
        return ", ".join(str(each) for each in subjects)

    return text(name, read)


def _event_object(value: Json, _now: int) -> object:
    fields = as_object(value.get("involvedObject")) or as_object(value.get("regarding")) or {}
    return f"{str(fields.get('kind', '')).lower()}/{fields.get('name', '')}"


def _event_field(value: Json, _now: int) -> object:
    fields = as_object(value.get("involvedObject")) or as_object(value.get("regarding")) or {}
    return fields.get("fieldPath", "")


def _event_source(value: Json, _now: int) -> object:
    component = (
        at(value, "source.component") or value.get("reportingComponent") or value.get("reportingController")
    )
    return ", ".join(str(each) for each in (component, at(value, "source.host")) if each)


def _first_seen(value: Json, now_ms: int) -> object:
    stamp = value.get("firstTimestamp") or value.get("deprecatedFirstTimestamp") or value.get("eventTime")
    return ages.since(stamp, now_ms)


def _last_seen(value: Json, now_ms: int) -> object:
    stamp = (
        at(value, "series.lastObservedTime")
        or value.get("lastTimestamp")
        or value.get("deprecatedLastTimestamp")
    )
    return ages.since(stamp, now_ms) if stamp else _first_seen(value, now_ms)


def _event_count(value: Json, _now: int) -> object:
    return at(value, "series.count") or value.get("count") or value.get("deprecatedCount") or 1


def _event_message(value: Json, _now: int) -> object:
    return str(value.get("message") or value.get("note") or "").strip()


_EVENT: Final = (
    text("Last Seen", _last_seen),
    text("Type", text_at("type")),
    text("Reason", text_at("reason")),
    text("Object", _event_object),
    *wide(text("Subobject", _event_field), text("Source", _event_source)),
    text("Message", _event_message),
    *wide(text("First Seen", _first_seen), number("Count", _event_count), NAME),
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
    ("", "ServiceAccount"): (NAME, text("Secrets", lambda value, _now: len(items(value, "secrets"))), AGE),
    ("networking.k8s.io", "Ingress"): (
        NAME,
        text("Class", text_at("spec.ingressClassName", NONE)),
        text("Hosts", _hosts),
        text("Address", _ingress_address),
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
        flag("Global-Default", lambda value, _now: value.get("globalDefault") is True),
        AGE,
        text("PreemptionPolicy", text_at("preemptionPolicy", "PreemptLowerPriority")),
    ),
    ("coordination.k8s.io", "Lease"): (NAME, text("Holder", text_at("spec.holderIdentity")), AGE),
}
