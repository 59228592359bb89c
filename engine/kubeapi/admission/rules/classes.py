"""Validation of classes of container runtimes and of volumes, and of storage capacities, from the published API."""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.admission.rules import pods
from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.values import quantity
from events.json_values import as_text
from events.kube_objects import KubeObject

_PARAMETERS_BYTES_MAX: Final = 256 * 1024


def runtime_class(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    handler, scheduling = as_text(value.at("handler")), value.object_at("scheduling")
    yield from words.each_invalid("handler", handler, words.label_faults(handler))
    yield from pods.resources({"limits": value.at("overhead", "podFixed")}, "overhead")
    yield from words.labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    yield from pods.tolerations(scheduling.get("tolerations"), "scheduling.tolerations.tolerations")
    yield from words.immutable(value, live, "handler")


def volume_attributes_class(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    parameters = value.object_at("parameters")
    yield from _fixed(value, live, "driverName", "parameters")
    yield from _driver(value, "driverName")
    if not parameters:
        yield causes.required("parameters", "must contain at least one key/value pair")
    if "" in parameters:
        yield causes.invalid("parameters", "", "field can not be empty.")
    if sum(len(f"{name}{item}".encode()) for name, item in parameters.items()) > _PARAMETERS_BYTES_MAX:
        yield causes.too_long("parameters", _PARAMETERS_BYTES_MAX)


def storage_class(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    yield from _fixed(value, live, "parameters", "provisioner", "reclaimPolicy")
    yield from words.immutable(value, live, "volumeBindingMode")
    yield from _driver(value, "provisioner")
    yield from words.one_of(value.document, "reclaimPolicy", "", ("Delete", "Retain"))
    yield from words.one_of(value.document, "volumeBindingMode", "", ("Immediate", "WaitForFirstConsumer"))


def storage_capacity(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    name, size = as_text(value.at("storageClassName")), quantity.nano_units_of(value.at("capacity"))
    yield from words.selector(value.at("nodeTopology"), "nodeTopology")
    yield from words.each_invalid("storageClassName", name, words.subdomain_faults(name))
    if size is not None and size < 0:
        yield causes.invalid("capacity", value.at("capacity"), words.AT_LEAST_ZERO)
    yield from words.immutable(value, live, "nodeTopology", "storageClassName")


def _fixed(value: KubeObject, live: KubeObject | None, *fields: str) -> Iterator[Cause]:
    """Yield an error for each changed field; its message differs from that of ``words.immutable``, as in Kubernetes."""
    for field in fields:
        if live is not None and live.at(field) != value.at(field):
            yield causes.forbidden(field, f"updates to {field} are forbidden.")


def _driver(value: KubeObject, field: str) -> Iterator[Cause]:
    yield from words.required(field, as_text(value.at(field)).lower(), words.qualified_faults)
