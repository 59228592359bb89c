"""Conversion of HorizontalPodAutoscalers between autoscaling/v1 and autoscaling/v2.

v1 has a field for the CPU target only. A v1 object has all other metrics, the behavior, the status metrics and the
conditions in annotations, as in Kubernetes, so that a round trip loses nothing; v2 objects have no such annotations.
On conversion to v2 the CPU metric of v1 is appended to the other metrics.
"""

from typing import Final

import msgspec

from engine.kubeapi.patching import managed_fields
from engine.kubeapi.patching.managed_fields import Path
from events.json_values import DECODING_ERRORS, Json, as_list, as_object, canonical_json, list_at, object_at
from events.kube_objects import KubeObject

V1: Final = "autoscaling/v1"
V2: Final = "autoscaling/v2"
_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_TARGET: Final = "target"
_CURRENT_WORD: Final = "current"
_METRICS: Final = f"{_PREFIX}metrics"
_BEHAVIOR: Final = f"{_PREFIX}behavior"
_CURRENT: Final = f"{_PREFIX}current-metrics"
_CONDITIONS: Final = f"{_PREFIX}conditions"
_BEHAVIOR_LEVELS: Final = 4
"""Nesting levels of a behavior: the behavior, the rules of a direction, their list of policies, a policy."""

_ROUND_TRIP: Final = frozenset({_METRICS, _BEHAVIOR, _CURRENT, _CONDITIONS})
_OWNED: Final[tuple[tuple[Path, Path], ...]] = (
    (("f:spec", "f:targetCPUUtilizationPercentage"), ("f:spec", "f:metrics")),
    (("f:status", "f:currentCPUUtilizationPercentage"), ("f:status", "f:currentMetrics")),
)
"""Pairs of equivalent fields, (v1, v2); conversion moves their ownership from one to the other."""


class ConversionError(ValueError):
    """A conversion annotation that is not valid JSON, or has a value of a wrong type."""


def to_served(value: KubeObject) -> KubeObject:
    """Convert a v2 autoscaler to v1."""
    spec, status = dict(value.object_at("spec")), dict(value.object_at("status"))
    notes: Json = {}
    metrics = _objects(spec.pop("metrics", None))
    figure = next((metric for metric in metrics if _cpu_target(metric) is not None), None)
    if figure is not None:
        spec["targetCPUUtilizationPercentage"] = _cpu_target(figure)
    if rest := [_flat(metric, _TARGET) for metric in metrics if metric is not figure]:
        notes[_METRICS] = rest
    if "behavior" in spec:
        notes[_BEHAVIOR] = spec.pop("behavior")
    current = _objects(status.pop("currentMetrics", None))
    if current:
        notes[_CURRENT] = [_flat(metric, _CURRENT_WORD) for metric in current]
        used = (object_at(metric, "resource", "current") for metric in current if _is_cpu(metric))
        shares = [metric["averageUtilization"] for metric in used if "averageUtilization" in metric]
        status |= {"currentCPUUtilizationPercentage": shares[0]} if shares else {}
    if status:
        # Unlike v2, v1 requires the number of replicas.
        status.setdefault("currentReplicas", 0)
    if conditions := status.pop("conditions", None):
        notes[_CONDITIONS] = conditions
    texts: Json = {name: canonical_json(item).decode() for name, item in notes.items()}
    result = _with(value, V1, spec, status, texts)
    return _owned_as(result, {two: v2_name for v2_name, two in _OWNED})


def to_stored(value: KubeObject) -> KubeObject:
    """Convert a v1 autoscaler to v2; raises ConversionError."""
    spec, status = dict(value.object_at("spec")), dict(value.object_at("status"))
    notes = value.annotations
    metrics = [_nested(metric, _TARGET) for metric in _objects(_read(notes, _METRICS))]
    share = spec.pop("targetCPUUtilizationPercentage", None)
    if share is not None:
        target: Json = {"type": "Utilization", "averageUtilization": share}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    spec |= {"metrics": metrics} if metrics else {}
    if (behavior := as_object(_read(notes, _BEHAVIOR))) is not None:
        spec["behavior"] = _uncapitalized(behavior)
    used = status.pop("currentCPUUtilizationPercentage", None)
    current = [_nested(metric, _CURRENT_WORD) for metric in _objects(_read(notes, _CURRENT))]
    if not current and used is not None:
        cpu: Json = {"name": "cpu", "current": {"averageUtilization": used}}
        current = [{"type": "Resource", "resource": cpu}]
    status |= {"currentMetrics": current} if current else {}
    if conditions := _objects(_read(notes, _CONDITIONS)):
        status["conditions"] = conditions
    return _owned_as(_with(value, V2, spec, status, {}), dict(_OWNED))


def _with(value: KubeObject, api_version: str, spec: Json, status: Json, notes: Json) -> KubeObject:
    metadata = dict(value.metadata)
    annotations = object_at(metadata.pop("annotations", None))
    # Remove annotations of an earlier conversion: the fields may have changed since.
    texts = {**{name: text for name, text in annotations.items() if name not in _ROUND_TRIP}, **notes}
    result: Json = {**value.document, "apiVersion": api_version}
    if metadata or texts:
        result["metadata"] = {**metadata, **({"annotations": texts} if texts else {})}
    for name, part in (("spec", spec), ("status", status)):
        result.pop(name, None)
        if name in value.document or part:
            result[name] = part
    return KubeObject(result)


def _flat(metric: Json, word: str) -> Json:
    """Return a v2 metric in the annotation's flat form; names of value fields begin with ``word`` (target, current)."""
    name, source = _source(metric)
    figures, identity = object_at(source, word), object_at(source, "metric")
    share, mean, whole = (figures.get(name) for name in ("averageUtilization", "averageValue", "value"))
    named: Json = {"metricName": identity.get("name"), _selector(name): identity.get("selector")}
    result: Json
    match name:
        case "resource" | "containerResource":
            result = _chosen_fields(source, "name", "container")
            result |= {f"{word}AverageUtilization": share, f"{word}AverageValue": mean}
        case "pods":
            result = {**named, f"{word}AverageValue": mean}
        case "object":
            result = {"target": source.get("describedObject"), **named, "averageValue": mean}
            # autoscaling/v1 requires the field `targetValue` of an object metric.
            result[f"{word}Value"] = "0" if whole is None and word == _TARGET else whole
        case "external":
            result = {**named, f"{word}Value": whole, f"{word}AverageValue": mean}
        case _:
            result = source
    return {"type": metric.get("type"), name: _present(result)}


def _nested(metric: Json, word: str) -> Json:
    """Return a metric of an annotation in the v2 form; reverses ``_flat``."""
    name, source = _source(metric)
    figures = _present(
        {
            "averageUtilization": source.get(f"{word}AverageUtilization"),
            "averageValue": source.get("averageValue" if name == "object" else f"{word}AverageValue"),
            "value": source.get(f"{word}Value"),
        }
    )
    if word == _TARGET:
        if name == "object" and "averageValue" in figures:
            figures.pop("value", None)
        figures = {"type": _kind_of_target(figures), **figures}
    identity: Json = {
        "metric": _present({"name": source.get("metricName"), "selector": source.get(_selector(name))})
    }
    result: Json
    match name:
        case "resource" | "containerResource":
            result = {**_chosen_fields(source, "name", "container"), word: figures}
        case "object":
            result = {"describedObject": source.get("target"), **identity, word: figures}
        case "pods" | "external":
            result = {**identity, word: figures}
        case _:
            result = source
    return {"type": metric.get("type"), name: _present(result)}


def _kind_of_target(figures: Json) -> str:
    """Return the target type, which the flat form leaves out."""
    if "averageUtilization" in figures:
        return "Utilization"
    return "AverageValue" if "averageValue" in figures else "Value"


def _selector(name: str) -> str:
    return "metricSelector" if name == "external" else "selector"


def _source(metric: Json) -> tuple[str, Json]:
    """Return the metric source: the name and the value of the field that belongs to the metric's type."""
    kind = str(metric.get("type", ""))
    name = _lowered(kind)
    return name, object_at(metric, name)


def _is_cpu(metric: Json) -> bool:
    return metric.get("type") == "Resource" and object_at(metric, "resource").get("name") == "cpu"


def _cpu_target(metric: Json) -> object:
    target = object_at(metric, "resource", "target") if _is_cpu(metric) else {}
    return target.get("averageUtilization") if target.get("type") == "Utilization" else None


def _owned_as(value: KubeObject, names: dict[Path, Path]) -> KubeObject:
    """Return the object with field ownership translated to the other version's fields."""
    return managed_fields.renamed(value, lambda path: names.get(path, path))


def _read(notes: Json, name: str) -> object:
    text = notes.get(name)
    if text is None:
        return None
    try:
        return msgspec.json.decode(str(text))
    except DECODING_ERRORS:
        raise ConversionError(f"metadata.annotations.{name}: is not JSON") from None


def _uncapitalized(value: object, levels: int = _BEHAVIOR_LEVELS) -> object:
    """Return a behavior with JSON field names: Kubernetes writes the annotation with Go's capitalized names."""
    items, fields = as_list(value), as_object(value)
    if levels and items is not None:
        return [_uncapitalized(item, levels - 1) for item in items]
    if levels and fields is not None:
        return _present({_lowered(name): _uncapitalized(item, levels - 1) for name, item in fields.items()})
    return value


def _lowered(name: str) -> str:
    return name[:1].lower() + name[1:]


def _chosen_fields(source: Json, *names: str) -> Json:
    return {name: source[name] for name in names if name in source}


def _present(value: Json) -> Json:
    return {name: item for name, item in value.items() if item is not None}


def _objects(value: object) -> list[Json]:
    return [fields for item in list_at(value) if (fields := as_object(item)) is not None]
