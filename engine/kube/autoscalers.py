"""HorizontalPodAutoscalers of autoscaling/v1, made of those of autoscaling/v2, and back.

v1 knows one figure, the use of processors. What it has no field for stands in annotations, as Kubernetes writes them,
so that nothing is lost on the way: metrics, behavior, and of the status metrics and conditions. In v2 there are no
such annotations. On the way back the figure of v1 comes behind the other metrics, as in Kubernetes.
"""

from typing import Final

import msgspec

from engine.kube import field_sets, managed_fields
from engine.kube.field_sets import FieldSet, Path
from engine.kube.schemas import Json, as_list, as_object

V1: Final = "autoscaling/v1"
V2: Final = "autoscaling/v2"
_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_METRICS: Final = f"{_PREFIX}metrics"
_BEHAVIOR: Final = f"{_PREFIX}behavior"
_CURRENT: Final = f"{_PREFIX}current-metrics"
_CONDITIONS: Final = f"{_PREFIX}conditions"
_ROUND_TRIP: Final = frozenset({_METRICS, _BEHAVIOR, _CURRENT, _CONDITIONS})
_OWNED: Final[tuple[tuple[Path, Path], ...]] = (
    (("f:spec", "f:targetCPUUtilizationPercentage"), ("f:spec", "f:metrics")),
    (("f:status", "f:currentCPUUtilizationPercentage"), ("f:status", "f:currentMetrics")),
)
"""Fields that stand for each other, of v1 and of v2."""

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class ConversionError(ValueError):
    """An annotation that stands for what v1 has no field for, and can't be read."""


def shown(value: Json) -> Json:
    """An autoscaler of v2 as v1 has it."""
    spec, status = dict(_part(value, "spec")), dict(_part(value, "status"))
    notes: Json = {}
    metrics = _objects(spec.pop("metrics", None))
    figure = next((each for each in metrics if _cpu_target(each) is not None), None)
    if figure is not None:
        spec["targetCPUUtilizationPercentage"] = _cpu_target(figure)
    if rest := [_metric_of_v1(each) for each in metrics if each is not figure]:
        notes[_METRICS] = rest
    if "behavior" in spec:
        notes[_BEHAVIOR] = spec.pop("behavior")
    current = _objects(status.pop("currentMetrics", None))
    if current:
        notes[_CURRENT] = [_current_of_v1(each) for each in current]
        used = (_part(_part(each, "resource"), "current") for each in current if _is_cpu(each))
        shares = [each["averageUtilization"] for each in used if "averageUtilization" in each]
        status |= {"currentCPUUtilizationPercentage": shares[0]} if shares else {}
    if conditions := status.pop("conditions", None):
        notes[_CONDITIONS] = conditions
    texts: Json = {name: _encode(item).decode() for name, item in notes.items()}
    found = _with(value, V1, spec, status, texts)
    return _owned_as(found, {two: one for one, two in _OWNED})


def kept(value: Json) -> Json:
    """An autoscaler of v1 as v2 has it; raises ConversionError."""
    spec, status = dict(_part(value, "spec")), dict(_part(value, "status"))
    notes = _part(_part(value, "metadata"), "annotations")
    metrics = [_metric_of_v2(each) for each in _objects(_read(notes, _METRICS))]
    share = spec.pop("targetCPUUtilizationPercentage", None)
    if share is not None:
        target: Json = {"type": "Utilization", "averageUtilization": share}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    spec |= {"metrics": metrics} if metrics else {}
    if (behavior := as_object(_read(notes, _BEHAVIOR))) is not None:
        spec["behavior"] = behavior
    used = status.pop("currentCPUUtilizationPercentage", None)
    current = [_current_of_v2(each) for each in _objects(_read(notes, _CURRENT))]
    if not current and used is not None:
        held: Json = {"name": "cpu", "current": {"averageUtilization": used}}
        current = [{"type": "Resource", "resource": held}]
    status |= {"currentMetrics": current} if current else {}
    if conditions := _objects(_read(notes, _CONDITIONS)):
        status["conditions"] = conditions
    return _owned_as(_with(value, V2, spec, status, {}), dict(_OWNED))


def _with(value: Json, api_version: str, spec: Json, status: Json, notes: Json) -> Json:
    metadata = dict(_part(value, "metadata"))
    held = as_object(metadata.pop("annotations", None)) or {}
    texts = {**{name: text for name, text in held.items() if name not in _ROUND_TRIP}, **notes}
    found: Json = {**value, "apiVersion": api_version}
    if metadata or texts:
        found["metadata"] = {**metadata, **({"annotations": texts} if texts else {})}
    for name, part in (("spec", spec), ("status", status)):
        found.pop(name, None)
        if name in value or part:
            found[name] = part
    return found


def _metric_of_v1(metric: Json) -> Json:
    """A metric as its annotation has it: flat, with the older names."""
    name, source = _source(metric)
    target, identity = _part(source, "target"), _part(source, "metric")
    share, mean, whole = (target.get(each) for each in ("averageUtilization", "averageValue", "value"))
    found: Json
    match name:
        case "resource" | "containerResource":
            found = _kept(source, "name", "container")
            found |= {"targetAverageUtilization": share, "targetAverageValue": mean}
        case "pods":
            found = {"metricName": identity.get("name"), "selector": identity.get("selector")}
            found |= {"targetAverageValue": mean}
        case "object":
            found = {"target": source.get("describedObject"), "metricName": identity.get("name")}
            found |= {"selector": identity.get("selector"), "averageValue": mean}
            found |= {"targetValue": whole if whole is not None else "0"}
        case "external":
            found = {"metricName": identity.get("name"), "metricSelector": identity.get("selector")}
            found |= {"targetValue": whole, "targetAverageValue": mean}
        case _:
            found = source
    return {"type": metric.get("type"), name: _present(found)}


def _metric_of_v2(metric: Json) -> Json:
    name, source = _source(metric)
    share, mean = source.get("targetAverageUtilization"), source.get("targetAverageValue")
    whole = source.get("targetValue")
    found: Json
    match name:
        case "resource" | "containerResource":
            found = {**_kept(source, "name", "container"), "target": _target(share, mean, None)}
        case "pods":
            found = {**_identity(source, "selector"), "target": _target(None, mean, None)}
        case "object":
            mean = source.get("averageValue")
            target = _target(None, mean, None if mean is not None else whole)
            found = {
                "describedObject": source.get("target"),
                **_identity(source, "selector"),
                "target": target,
            }
        case "external":
            found = {**_identity(source, "metricSelector"), "target": _target(None, mean, whole)}
        case _:
            found = source
    return {"type": metric.get("type"), name: _present(found)}


def _current_of_v1(metric: Json) -> Json:
    name, source = _source(metric)
    current, identity = _part(source, "current"), _part(source, "metric")
    share, mean, whole = (current.get(each) for each in ("averageUtilization", "averageValue", "value"))
    found: Json
    match name:
        case "resource" | "containerResource":
            found = _kept(source, "name", "container")
            found |= {"currentAverageUtilization": share, "currentAverageValue": mean}
        case "pods":
            found = {"metricName": identity.get("name"), "selector": identity.get("selector")}
            found |= {"currentAverageValue": mean}
        case "object":
            found = {"target": source.get("describedObject"), "metricName": identity.get("name")}
            found |= {"selector": identity.get("selector"), "currentValue": whole, "averageValue": mean}
        case "external":
            found = {"metricName": identity.get("name"), "metricSelector": identity.get("selector")}
            found |= {"currentValue": whole, "currentAverageValue": mean}
        case _:
            found = source
    return {"type": metric.get("type"), name: _present(found)}


def _current_of_v2(metric: Json) -> Json:
    name, source = _source(metric)
    mean = source.get("averageValue" if name == "object" else "currentAverageValue")
    shares: Json = {
        "averageUtilization": source.get("currentAverageUtilization"),
        "averageValue": mean,
        "value": source.get("currentValue"),
    }
    current: Json = {"current": _present(shares)}
    found: Json
    match name:
        case "resource" | "containerResource":
            found = {**_kept(source, "name", "container"), **current}
        case "object":
            found = {"describedObject": source.get("target"), **_identity(source, "selector"), **current}
        case "pods" | "external":
            selector = "selector" if name == "pods" else "metricSelector"
            found = {**_identity(source, selector), **current}
        case _:
            found = source
    return {"type": metric.get("type"), name: _present(found)}


def _target(share: object, mean: object, whole: object) -> Json:
    """What a metric is to come to, with the word for it that v1 leaves out."""
    kind = "Utilization" if share is not None else "AverageValue" if mean is not None else "Value"
    return {"type": kind, **_present({"averageUtilization": share, "averageValue": mean, "value": whole})}


def _identity(source: Json, selector: str) -> Json:
    return {"metric": _present({"name": source.get("metricName"), "selector": source.get(selector)})}


def _source(metric: Json) -> tuple[str, Json]:
    """The part of a metric that its type names, with its name."""
    kind = str(metric.get("type", ""))
    name = kind[:1].lower() + kind[1:]
    return name, _part(metric, name)


def _is_cpu(metric: Json) -> bool:
    return metric.get("type") == "Resource" and _part(metric, "resource").get("name") == "cpu"


def _cpu_target(metric: Json) -> object:
    target = _part(_part(metric, "resource"), "target") if _is_cpu(metric) else {}
    return target.get("averageUtilization") if target.get("type") == "Utilization" else None


def _owned_as(value: Json, names: dict[Path, Path]) -> Json:
    """The object whose owners own the fields of the other version."""
    listed = as_list(managed_fields.in_object(value))
    if not listed:
        return value
    entries: list[Json] = []
    for each in listed:
        entry = as_object(each) or {}
        try:
            fields = field_sets.decode(entry.get("fieldsV1", {}))
        except field_sets.FieldSetError:
            entries.append(entry)
            continue
        entries.append({**entry, "fieldsV1": field_sets.encode(_renamed(fields, names))})
    return managed_fields.replaced(value, entries)


def _renamed(fields: FieldSet, names: dict[Path, Path]) -> FieldSet:
    return frozenset(names.get(path, path) for path in fields)


def _read(notes: Json, name: str) -> object:
    text = notes.get(name)
    if text is None:
        return None
    try:
        return msgspec.json.decode(str(text))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise ConversionError(f"metadata.annotations.{name}: is no JSON") from None


def _kept(source: Json, *names: str) -> Json:
    return {name: source[name] for name in names if name in source}


def _present(value: Json) -> Json:
    return {name: item for name, item in value.items() if item is not None}


def _part(value: Json, name: str) -> Json:
    return as_object(value.get(name)) or {}


def _objects(value: object) -> list[Json]:
    return [held for each in as_list(value) or [] if (held := as_object(each)) is not None]
