"""Validation of device classes, claims and slices (resource.k8s.io), from the published Kubernetes API.

CEL expressions are not compiled, and the attributes and capacities of devices in slices are not validated.
"""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.admission.rules.parts import Part, spec_of
from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from events.kube_objects import KubeObject

_EXPRESSION_BYTES_MAX: Final = 10 * 1024
_DRIVER_CHARS_MAX: Final = 63
_NODES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_DESCRIPTION: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_OF_NODES: Final = (
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
)
_REFERENCE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def device_class(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    yield from _selectors(spec_of(value))
    for configuration in spec_of(value).parts("config"):
        yield from _configuration(configuration)


def resource_claim(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    yield from words.immutable(value, live, "spec")
    yield from _claim(spec_of(value).part("devices"))


def resource_claim_template(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    yield from words.immutable(value, live, "spec")
    yield from _claim(spec_of(value).part("spec").part("devices"))


def resource_slice(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    spec = spec_of(value)
    pool = spec.part("pool")
    yield from _driver(spec)
    yield from pool.required("name")
    for part in pool.text("name").split("/") if pool.text("name") else ():
        yield from words.each_invalid("spec.pool.name", part, words.subdomain_faults(part))
    if (pool.number("resourceSliceCount") or 0) <= 0:
        yield pool.invalid("resourceSliceCount", "must be greater than zero")
    if (pool.number("generation") or 0) < 0:
        yield pool.invalid("generation", "must be greater than or equal to zero")
    yield from words.immutable(value, live, "spec.pool.name", "spec.driver", "spec.nodeName")
    nodes = [f"`{field}`" for field in _NODES if spec.fields.get(field)]
    if not nodes:
        yield causes.required("spec", _ONE_OF_NODES)
    elif len(nodes) > 1:
        detail = f"{_ONE_OF_NODES}, but multiple fields are set"
        yield causes.invalid("spec", f"{{{', '.join(nodes)}}}", detail)
    yield from _names(spec.parts("devices"))


def _claim(devices: Part) -> Iterator[Cause]:
    requests = devices.parts("requests")
    for request in requests:
        yield from _request(request)
    yield from _names(requests)
    known = {
        name
        for request in requests
        for name in (
            request.text("name"),
            *(f"{request.text('name')}/{item.text('name')}" for item in request.parts("firstAvailable")),
        )
    }
    for constraint in devices.parts("constraints"):
        yield from _references(constraint, known)
        if not constraint.text("distinctAttribute"):
            yield from constraint.required("matchAttribute")
    for configuration in devices.parts("config"):
        yield from _references(configuration, known)
        yield from _configuration(configuration)


def _request(request: Part) -> Iterator[Cause]:
    alternatives, has_exactly = request.parts("firstAvailable"), request.has("exactly")
    yield from _names(alternatives)
    for description in (*alternatives, *([request.part("exactly")] if has_exactly else [])):
        yield from _description(description)
    if not has_exactly and not alternatives:
        yield causes.required(request.path, _ONE_DESCRIPTION)
    elif has_exactly and alternatives:
        yield causes.invalid(request.path, None, f"{_ONE_DESCRIPTION}, but multiple fields are set")


def _description(description: Part) -> Iterator[Cause]:
    mode, count = description.text("allocationMode"), description.number("count")
    yield from description.name("deviceClassName")
    yield from _selectors(description)
    if mode == "All" and count:
        yield description.invalid("count", "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count is not None and count <= 0:
        yield description.invalid("count", "must be greater than zero")
    yield from words.one_of(description.fields, "allocationMode", description.path, ("All", "ExactCount"))


def _names(items: list[Part]) -> Iterator[Cause]:
    """Yield an error for each name that is not a label, and for each repeated name."""
    names = [item.text("name") for item in items]
    for item, name in zip(items, names, strict=True):
        yield from words.each_invalid(f"{item.path}.name", name, words.label_faults(name))
    seen: set[str] = set()
    for item, name in zip(items, names, strict=True):
        if name in seen:
            yield causes.duplicate(f"{item.path}.name", name)
        seen.add(name)


def _selectors(description: Part) -> Iterator[Cause]:
    for selector in description.parts("selectors"):
        if not selector.has("cel"):
            yield causes.required(f"{selector.path}.cel")
            continue
        cel = selector.part("cel")
        yield from cel.required("expression")
        if len(cel.text("expression").encode()) > _EXPRESSION_BYTES_MAX:
            yield causes.too_long(f"{cel.path}.expression", _EXPRESSION_BYTES_MAX)


def _references(part: Part, known: set[str]) -> Iterator[Cause]:
    """Yield an error for each reference to a request that the claim does not contain."""
    for index, name in enumerate(part.list_at("requests")):
        if isinstance(name, str) and name not in known:
            yield causes.invalid(f"{part.path}.requests[{index}]", name, _REFERENCE)


def _configuration(configuration: Part) -> Iterator[Cause]:
    opaque = configuration.part("opaque")
    if not configuration.has("opaque"):
        yield causes.required(opaque.path)
        return
    yield from _driver(opaque)
    if opaque.fields.get("parameters") is None:
        yield causes.required(f"{opaque.path}.parameters")
    elif not opaque.has("parameters"):
        yield causes.invalid(f"{opaque.path}.parameters", "<value omitted>", "must be a valid JSON object")


def _driver(part: Part) -> Iterator[Cause]:
    name = part.text("driver")
    yield from part.required("driver")
    if len(name) > _DRIVER_CHARS_MAX:
        yield causes.too_long(f"{part.path}.driver", _DRIVER_CHARS_MAX)
    yield from words.each_invalid(f"{part.path}.driver", name, words.subdomain_faults(name.lower()))
