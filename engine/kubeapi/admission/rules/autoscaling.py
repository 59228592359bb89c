"""Validation of HorizontalPodAutoscalers, from the published Kubernetes API."""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.values import quantity
from events.json_values import Json, as_list, as_object, as_text, object_at, objects_at
from events.kube_objects import KubeObject

_SOURCES: Final[Mapping[str, str]] = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_NAMES: Final = {
    "Resource": (("name", "resource"),),
    "ContainerResource": (("name", "resource"), ("container", "container")),
}
"""By metric type: required fields with a name, and the word for it in errors. Other types have a field ``metric``."""

_TARGETS: Final = ("AverageValue", "Utilization", "Value")
_TO_ZERO: Final = ("External", "Object")
_WINDOW_S_MAX: Final = 3_600
_PERIOD_S_MAX: Final = 1_800
_ABOVE_ZERO: Final = "must be greater than 0"


def autoscaler(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    if words.is_number(least) and least < 1:
        yield causes.invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if words.is_number(most) and most < 1:
        yield causes.invalid("spec.maxReplicas", most, _ABOVE_ZERO)
    if words.is_number(least) and words.is_number(most) and most < least:
        yield causes.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    yield from _target(object_at(spec, "scaleTargetRef"), "spec.scaleTargetRef")
    metrics = objects_at(spec, "metrics")
    for index, metric in enumerate(metrics):
        yield from _metric(metric, f"spec.metrics[{index}]")
    if least == 0 and not any(metric.get("type") in _TO_ZERO for metric in metrics):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield causes.forbidden("spec.metrics", detail)
    behavior = object_at(spec, "behavior")
    for name in ("scaleUp", "scaleDown"):
        yield from _rules(object_at(behavior, name), f"spec.behavior.{name}")


def _target(target: Json, path: str) -> Iterator[Cause]:
    yield from _referred(target, path)
    version, kind = str(target.get("apiVersion") or ""), target.get("kind")
    if "/" not in version and kind != "ReplicationController":
        yield causes.invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _referred(target: Json, path: str) -> Iterator[Cause]:
    for name in ("kind", "name"):
        yield from words.required(f"{path}.{name}", as_text(target.get(name)), words.segment_faults)


def _metric(metric: Json, path: str) -> Iterator[Cause]:
    type_name = str(metric.get("type") or "")
    if not type_name:
        yield causes.required(f"{path}.type", "must specify a metric source type")
        return
    if type_name not in _SOURCES:
        # Kubernetes checks the type twice, the second time to choose the metric source: report the same error twice.
        yield from (causes.unsupported(f"{path}.type", type_name, _SOURCES) for _ in range(2))
        return
    for other, name in _SOURCES.items():
        if other != type_name and metric.get(name) is not None:
            detail = "must populate the given metric source only"
            yield causes.forbidden(f"{path}.{name}", detail)
    name = _SOURCES[type_name]
    source, where = as_object(metric.get(name)), f"{path}.{name}"
    if source is None:
        yield causes.required(where, "must populate information for the given metric source")
        return
    yield from _source(type_name, source, where)


def _source(sort: str, source: Json, path: str) -> Iterator[Cause]:
    target, where = object_at(source, "target"), f"{path}.target"
    for name, subject in _NAMES.get(sort, ()):
        if not source.get(name):
            yield causes.required(f"{path}.{name}", f"must specify a {subject} name")
    if sort == "Object":
        yield from _referred(object_at(source, "describedObject"), f"{path}.describedObject")
    if sort not in _NAMES:
        metric = object_at(source, "metric")
        yield from words.required(f"{path}.metric.name", as_text(metric.get("name")), words.segment_faults)
        yield from words.selector(metric.get("selector"), f"{path}.metric.selector")
    yield from _amounts(target, where)
    if sort in _NAMES:
        yield from _resource_target(target, where)
    elif sort != "Pods":
        yield from _value_target(target, where)
    elif target.get("averageValue") is None:
        yield causes.required(f"{where}.averageValue", "must specify a positive target averageValue")


def _amounts(target: Json, path: str) -> Iterator[Cause]:
    """Validate a metric's target: its type, and its amounts, which must be positive."""
    type_name = str(target.get("type") or "")
    if not type_name:
        yield causes.required(f"{path}.type", "must specify a metric target type")
    elif type_name not in _TARGETS:
        choices = " or ".join(_TARGETS)
        yield causes.invalid(f"{path}.type", type_name, f"must be either {choices}")
    for name in ("value", "averageValue"):
        amount = quantity.nano_units_of(target.get(name))
        if amount is not None and amount <= 0:
            yield causes.invalid(f"{path}.{name}", target[name], "must be positive")
    share = target.get("averageUtilization")
    if words.is_number(share) and share < 1:
        yield causes.invalid(f"{path}.averageUtilization", share, _ABOVE_ZERO)


def _resource_target(target: Json, path: str) -> Iterator[Cause]:
    share, amount = target.get("averageUtilization"), target.get("averageValue")
    if share is not None and amount is not None:
        detail = "may not set both a target raw value and a target utilization"
        yield causes.forbidden(f"{path}.averageValue", detail)
    elif share is None and amount is None:
        detail = "must set either a target raw value or a target utilization"
        yield causes.required(f"{path}.averageUtilization", detail)


def _value_target(target: Json, path: str) -> Iterator[Cause]:
    average, value = target.get("averageValue"), target.get("value")
    if average is None and value is None:
        detail = "must set either a target value for metric or a per-pod target"
        yield causes.required(f"{path}.averageValue", detail)
    elif average is not None and value is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        yield causes.forbidden(f"{path}.value", detail)


def _rules(rules: Json, path: str) -> Iterator[Cause]:
    """Validate the scaling behavior of one direction."""
    window = rules.get("stabilizationWindowSeconds")
    yield from words.not_negative(rules, "stabilizationWindowSeconds", path)
    if words.is_number(window) and window > _WINDOW_S_MAX:
        where = f"{path}.stabilizationWindowSeconds"
        yield causes.invalid(where, window, f"must be less than or equal to {_WINDOW_S_MAX}")
    yield from words.one_of(rules, "selectPolicy", path, ("Disabled", "Max", "Min"))
    listed = as_list(rules.get("policies"))
    if listed == []:
        yield causes.required(f"{path}.policies", "must specify at least one Policy")
    for index, policy in enumerate(objects_at(listed)):
        yield from _policy(policy, f"{path}.policies[{index}]")


def _policy(policy: Json, path: str) -> Iterator[Cause]:
    yield from words.one_of({"type": "", **policy}, "type", path, ("Percent", "Pods"))
    for name in ("value", "periodSeconds"):
        amount = policy.get(name) or 0
        if words.is_number(amount) and amount <= 0:
            yield causes.invalid(f"{path}.{name}", amount, "must be greater than zero")
    period = policy.get("periodSeconds")
    if words.is_number(period) and period > _PERIOD_S_MAX:
        yield causes.invalid(
            f"{path}.periodSeconds", period, f"must be less than or equal to {_PERIOD_S_MAX}"
        )
