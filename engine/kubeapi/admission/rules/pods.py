"""Validation of pods and of pod templates, from the published Kubernetes API."""

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from engine.kubeapi.admission.built_in_defaults import PROBES
from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.values import quantity
from engine.kubeapi.values.taints import Effect
from events.json_values import Json, as_list, as_object, at, object_at, objects_at
from events.kube_objects import KubeObject

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
RESTARTS: Final = ("Always", "OnFailure", "Never")
_OVERCOMMITTED: Final = ("cpu", "memory", "ephemeral-storage")
_NATIVE: Final = "kubernetes.io/"
"""Part of the names of Kubernetes' own resources. Other resources with a slash cannot be overcommitted."""

_FIELD_PATHS: Final = re.compile(
    r"metadata\.(name|namespace|uid|labels\['.+'\]|annotations\['.+'\])|spec\.(nodeName|serviceAccountName)"
    r"|status\.(hostIP|hostIPs|podIP|podIPs)"
)
_ENVIRONMENT_NAME: Final = re.compile(r"[ -<>-~]+")
_ENVIRONMENT_WORDS: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
_NEEDED_OF_VOLUMES: Final = {
    "configMap": "name",
    "secret": "secretName",
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
}
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_EFFECTS: Final = tuple(Effect)


def pod(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    yield from _spec(value.object_at("spec"), "spec", ())


def pod_template(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    yield from of_template(value.object_at("template"), "template")


def of_template(template: Json, path: str, claims: Iterable[str] = ()) -> Iterator[Cause]:
    """Yield the errors of a pod template at a path; ``claims`` are the names of volume claim templates."""
    metadata = object_at(template, "metadata")
    yield from words.labels(metadata.get("labels"), f"{path}.labels")
    if "annotations" in metadata:
        yield from words.annotations(metadata["annotations"], f"{path}.annotations")
    yield from _spec(object_at(template, "spec"), f"{path}.spec", claims)


def _spec(spec: Json, path: str, claims: Iterable[str]) -> Iterator[Cause]:
    volumes = objects_at(spec, "volumes") if "volumes" in spec else []
    if volumes:
        yield from _volumes(volumes, f"{path}.volumes")
    known = {*claims, *(str(volume.get("name", "")) for volume in volumes)}
    containers = objects_at(spec, "containers")
    if not containers:
        yield causes.required(f"{path}.containers")
    yield from _containers(containers, f"{path}.containers", known, spec, set())
    if "initContainers" in spec:
        named = {str(container.get("name", "")) for container in containers}
        first = objects_at(spec, "initContainers")
        yield from _containers(first, f"{path}.initContainers", known, spec, named)
    yield from words.one_of(spec, "restartPolicy", path, RESTARTS)
    choices = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
    yield from words.one_of(spec, "dnsPolicy", path, choices)
    # Most pods have few of these parts, and this code runs for every write: call no function for an absent
    # part.
    for name in _PARTS:
        if name in spec:
            yield from _PARTS[name](spec[name], f"{path}.{name}")


def address(value: object, path: str) -> Iterator[Cause]:
    """Yield an error if the value is not an IP address."""
    try:
        ipaddress.ip_address(str(value))
    except ValueError:
        yield causes.invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def _own_name(name: str, path: str, seen: set[str]) -> Iterator[Cause]:
    """Yield the errors of a list item's name, including a duplicate of a name in ``seen``; add the name to ``seen``."""
    if not name:
        yield causes.required(path)
        return
    yield from words.each_invalid(path, name, words.label_faults(name))
    if name in seen:
        yield causes.duplicate(path, name)
    seen.add(name)


def _containers(
    containers: list[Json], path: str, volumes: set[str], spec: Json, taken: set[str]
) -> Iterator[Cause]:
    seen = set(taken)
    for index, container in enumerate(containers):
        where, name = f"{path}[{index}]", str(container.get("name", ""))
        yield from _own_name(name, f"{where}.name", seen)
        image = container.get("image")
        if not image:
            yield causes.required(f"{where}.image")
        if "lifecycle" in container:
            yield from _hooks(object_at(container, "lifecycle"), f"{where}.lifecycle")
        for probe in PROBES:
            if probe in container:
                yield from _probe(as_object(container[probe]), probe, f"{where}.{probe}")
        if "ports" in container:
            is_on_host = spec.get("hostNetwork") is True
            yield from _ports(objects_at(container, "ports"), f"{where}.ports", is_on_host=is_on_host)
        if "env" in container:
            yield from _environment(objects_at(container, "env"), f"{where}.env")
        if "volumeMounts" in container:
            yield from _mounts(objects_at(container, "volumeMounts"), f"{where}.volumeMounts", volumes)
        yield from words.one_of(container, "imagePullPolicy", where, ("Always", "IfNotPresent", "Never"))
        if "resources" in container:
            yield from resources(object_at(container, "resources"), f"{where}.resources")


def _ports(ports: list[Json], path: str, *, is_on_host: bool) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        where, name = f"{path}[{index}]", port.get("name")
        if isinstance(name, str) and name:
            faults = words.port_name_faults(name)
            yield from words.each_invalid(f"{where}.name", name, faults)
            if not faults and name in seen:
                yield causes.duplicate(f"{where}.name", name)
            seen.add(name)
        inside, outside = port.get("containerPort"), port.get("hostPort")
        if not inside:
            yield causes.required(f"{where}.containerPort")
        yield from words.port(inside or None, f"{where}.containerPort")
        if outside:
            yield from words.port(outside, f"{where}.hostPort")
            if is_on_host and outside != inside:
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield causes.invalid(f"{where}.hostPort", outside, detail)
        yield from words.one_of(port, "protocol", where, PROTOCOLS)


def _environment(variables: list[Json], path: str) -> Iterator[Cause]:
    for index, variable in enumerate(variables):
        where, name = f"{path}[{index}]", str(variable.get("name") or "")
        if not name:
            yield causes.required(f"{where}.name")
        elif not _ENVIRONMENT_NAME.fullmatch(name):
            yield causes.invalid(f"{where}.name", name, _ENVIRONMENT_WORDS)
        source = as_object(variable.get("valueFrom"))
        if source is not None:
            yield from _source(variable, source, f"{where}.valueFrom")


def _source(variable: Json, source: Json, path: str) -> Iterator[Cause]:
    field = as_object(source.get("fieldRef"))
    if field is not None:
        text = str(field.get("fieldPath") or "")
        if not text:
            yield causes.required(f"{path}.fieldRef.fieldPath")
        elif not _FIELD_PATHS.fullmatch(text):
            detail = f"error converting fieldPath: field label not supported: {text}"
            yield causes.invalid(f"{path}.fieldRef.fieldPath", text, detail)
    for sort in ("configMapKeyRef", "secretKeyRef"):
        fields = as_object(source.get(sort))
        if fields is None:
            continue
        key = str(fields.get("key") or "")
        if not key:
            yield causes.required(f"{path}.{sort}.key")
        else:
            yield from words.key_causes(f"{path}.{sort}.key", key)
    if not source:
        detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield causes.invalid(path, "", detail)
    elif variable.get("value"):
        yield causes.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(source) > 1:
        yield causes.invalid(path, "", "may not have more than one field specified at a time")


def _mounts(mounts: list[Json], path: str, volumes: set[str]) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        where = f"{path}[{index}]"
        name, point = (str(mount.get(field) or "") for field in ("name", "mountPath"))
        if not name:
            yield causes.required(f"{where}.name")
        elif name not in volumes:
            yield causes.not_found(f"{where}.name", name)
        if not point:
            yield causes.required(f"{where}.mountPath")
        elif point in seen:
            yield causes.invalid(f"{where}.mountPath", point, "must be unique")
        seen.add(point)


def resources(resources: Json, path: str) -> Iterator[Cause]:
    limits, requested = object_at(resources, "limits"), object_at(resources, "requests")
    for name, amounts in (("limits", limits), ("requests", requested)):
        for resource, value in amounts.items():
            where = f"{path}.{name}[{resource}]"
            is_standard = resource in _OVERCOMMITTED or resource.startswith("hugepages-")
            if "/" not in resource and not is_standard:
                yield causes.invalid(where, resource, "must be a standard resource type or fully qualified")
                yield causes.invalid(where, resource, "must be a standard resource for containers")
            size = quantity.nano_units_of(value)
            if size is not None and size < 0:
                yield causes.invalid(where, str(value), words.AT_LEAST_ZERO)
    for resource, value in requested.items():
        most, least = quantity.nano_units_of(limits.get(resource)), quantity.nano_units_of(value)
        if most is None:
            if resource.startswith("hugepages-") or ("/" in resource and _NATIVE not in resource):
                yield causes.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif least is not None and least > most and (resource in _OVERCOMMITTED):
            detail = f"must be less than or equal to {resource} limit of {limits[resource]}"
            yield causes.invalid(f"{path}.requests", str(value), detail)


def _hooks(hooks: Json, path: str) -> Iterator[Cause]:
    for name in ("postStart", "preStop"):
        hook = as_object(hooks.get(name))
        if hook is not None:
            yield from _handler(hook, f"{path}.{name}", (*_HANDLERS[:3], "sleep"))


def _probe(probe: Json | None, name: str, path: str) -> Iterator[Cause]:
    if probe is None:
        return
    yield from _handler(probe, path, _HANDLERS)
    for number in (
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ):
        yield from words.not_negative(probe, number, path)
    needed = probe.get("successThreshold")
    if name != "readinessProbe" and needed not in (None, 1):
        yield causes.invalid(f"{path}.successThreshold", needed, "must be 1")


def _handler(handler: Json, path: str, handlers: tuple[str, ...]) -> Iterator[Cause]:
    handlers_set = [name for name in handlers if handler.get(name) is not None]
    if not handlers_set:
        yield causes.required(path, "must specify a handler type")
    for other in handlers_set[1:]:
        yield causes.forbidden(f"{path}.{other}", "may not specify more than 1 handler type")
    action = object_at(handler, handlers_set[0]) if handlers_set else {}
    where = f"{path}.{handlers_set[0]}" if handlers_set else path
    match handlers_set[:1]:
        case ["exec"]:
            if not action.get("command"):
                yield causes.required(f"{where}.command")
        case ["httpGet"]:
            yield from words.port_or_name(action.get("port"), f"{where}.port")
            yield from words.one_of(action, "scheme", where, ("HTTP", "HTTPS"))
        case ["tcpSocket"]:
            yield from words.port_or_name(action.get("port"), f"{where}.port")
        case ["grpc"]:
            yield from words.port(action.get("port"), f"{where}.port")
        case _:
            return


def _volumes(volumes: list[Json], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        where, name = f"{path}[{index}]", str(volume.get("name") or "")
        yield from _own_name(name, f"{where}.name", seen)
        sources = [source for source in volume if source != "name"]
        order = [
            *(source for source in sources if source == "emptyDir"),
            *(s for s in sources if s != "emptyDir"),
        ]
        for other in order[1:]:
            yield causes.forbidden(f"{where}.{other}", "may not specify more than 1 volume type")
        needed = _NEEDED_OF_VOLUMES.get(order[0]) if order else None
        if needed is not None and not at(volume, order[0], needed):
            yield causes.required(f"{where}.{order[0]}.{needed}")


def tolerations(tolerations: object, path: str) -> Iterator[Cause]:
    for index, toleration in enumerate(objects_at(tolerations)):
        where, key, operator = (
            f"{path}[{index}]",
            str(toleration.get("key") or ""),
            toleration.get("operator"),
        )
        if key:
            yield from words.each_invalid(f"{where}.key", key, words.qualified_faults(key))
        if not key and operator != "Exists":
            detail = (
                'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            )
            yield causes.invalid(f"{where}.operator", operator or "", detail)
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != Effect.NO_EXECUTE:
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield causes.invalid(f"{where}.effect", toleration.get("effect") or "", detail)
        value = str(toleration.get("value") or "")
        match operator:
            case "Equal" | "" | None:
                yield from words.each_invalid(f"{where}.operator", value, words.value_faults(value))
            case "Exists":
                if value:
                    detail = "value must be empty when `operator` is 'Exists'"
                    yield causes.invalid(f"{where}.operator", value, detail)
            case _:
                yield causes.unsupported(f"{where}.operator", operator, ("Equal", "Exists"))
        if toleration.get("effect"):
            yield from words.one_of(toleration, "effect", where, _EFFECTS)


def _affinity(affinity: object, path: str) -> Iterator[Cause]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    node = as_object(at(affinity, "nodeAffinity", required))
    if node is not None and not as_list(node.get("nodeSelectorTerms")):
        where = f"{path}.nodeAffinity.{required}.nodeSelectorTerms"
        yield causes.required(where, "must have at least one node selector term")
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = objects_at(affinity, kind, required)
        for index, term in enumerate(terms):
            where, key = f"{path}.{kind}.{required}[{index}].topologyKey", str(term.get("topologyKey") or "")
            if not key:
                yield causes.required(where, "can not be empty")
            yield from words.each_invalid(where, key, words.qualified_faults(key))


def _spread(constraints: object, path: str) -> Iterator[Cause]:
    for index, constraint in enumerate(objects_at(constraints)):
        where, skew, key = (
            f"{path}[{index}]",
            constraint.get("maxSkew"),
            str(constraint.get("topologyKey") or ""),
        )
        if not words.is_number(skew) or skew <= 0:
            yield causes.invalid(f"{where}.maxSkew", skew or 0, "must be greater than zero")
        if not key:
            yield causes.required(f"{where}.topologyKey", "can not be empty")
        yield from words.one_of(constraint, "whenUnsatisfiable", where, ("DoNotSchedule", "ScheduleAnyway"))


def subdomain(text: object, path: str) -> Iterator[Cause]:
    """Yield the errors of an optional name that must be an RFC 1123 subdomain."""
    if isinstance(text, str) and text:
        yield from words.each_invalid(path, text, words.subdomain_faults(text))


def _host(text: object, path: str) -> Iterator[Cause]:
    if isinstance(text, str):
        yield from words.each_invalid(path, text, words.label_faults(text))


def _aliases(aliases: object, path: str) -> Iterator[Cause]:
    for index, alias in enumerate(objects_at(aliases)):
        yield from address(alias.get("ip"), f"{path}[{index}].ip")


_PARTS: Final[Mapping[str, Callable[[object, str], Iterator[Cause]]]] = {
    "nodeSelector": words.labels,
    "serviceAccountName": subdomain,
    "affinity": _affinity,
    "topologySpreadConstraints": _spread,
    "hostname": _host,
    "tolerations": tolerations,
    "hostAliases": _aliases,
    "priorityClassName": subdomain,
}
"""Validation functions of the optional parts of a pod spec, in the order in which errors are reported."""
