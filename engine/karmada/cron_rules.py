"""Admission rules of CronFederatedHPAs, as in the schema of the kind and in its webhook in Karmada."""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.errors import causes
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.values import schedules
from events.json_values import Json, object_at, objects_at
from events.kube_objects import KubeObject
from events.validation import known_kinds

_FEDERATED: Final = "FederatedHPA"
_NAME_CHARS_MAX: Final = 32
_HISTORY_MAX: Final = 32
_HISTORY_MIN: Final = {"successfulHistoryLimit": 1, "failedHistoryLimit": 0}


def faults(value: KubeObject) -> Iterator[Cause]:
    """Yield the errors of a CronFederatedHPA: rules that can never be carried out, and duplicate rule names."""
    spec = value.object_at("spec")
    target = object_at(spec, "scaleTargetRef")
    kind = str(target.get("kind", ""))
    is_limited = target.get("apiVersion") == known_kinds.AUTOSCALING_GROUP
    if is_limited and kind != _FEDERATED:
        detail = f"invalid scaleTargetRef kind: {kind}, only support {_FEDERATED}"
        yield causes.invalid("spec.scaleTargetRef.kind", kind, detail)
        return
    names: set[object] = set()
    for index, rule in enumerate(objects_at(spec, "rules")):
        path, name = f"spec.rules[{index}]", str(rule.get("name", ""))
        if name in names:
            yield causes.duplicate(f"{path}.name", name)
        names.add(name)
        if not 0 < len(name) <= _NAME_CHARS_MAX:
            yield causes.invalid(f"{path}.name", name, f"must have 1 to {_NAME_CHARS_MAX} characters")
        yield from _times(rule, path)
        yield from _limits(rule, path) if is_limited else _replicas(rule, path, kind)
        yield from _histories(rule, path)


def _times(rule: Json, path: str) -> Iterator[Cause]:
    schedule, zone = str(rule.get("schedule", "")), str(rule.get("timeZone") or "")
    if fault := schedules.fault(schedule):
        yield causes.invalid(f"{path}.schedule", schedule, fault)
    elif schedules.parse(schedule) is None:
        yield causes.invalid(f"{path}.schedule", schedule, "intervals are not supported")
    if zone and not schedules.is_zone(zone):
        yield causes.invalid(f"{path}.timeZone", zone, f"unknown time zone {zone}")


def _limits(rule: Json, path: str) -> Iterator[Cause]:
    """Yield the errors of a rule that sets the limits of a FederatedHPA."""
    least, most = _number(rule, "targetMinReplicas"), _number(rule, "targetMaxReplicas")
    if least is None and most is None:
        detail = (
            "targetMinReplicas and targetMaxReplicas cannot be nil at the same time"
            f" if you want to scale {_FEDERATED}"
        )
        yield causes.invalid(f"{path}.targetMaxReplicas", "", detail)
    for name, count in (("targetMinReplicas", least), ("targetMaxReplicas", most)):
        if count is not None and count <= 0:
            yield causes.invalid(f"{path}.{name}", count, f"{name} should be larger than 0")
    if most is not None and (1 if least is None else least) > most:
        detail = "targetMaxReplicas should be larger than or equal to targetMinReplicas"
        yield causes.invalid(f"{path}.targetMinReplicas", least, detail)


def _replicas(rule: Json, path: str, kind: str) -> Iterator[Cause]:
    """Yield the errors of a rule that sets the replicas of its target."""
    count = _number(rule, "targetReplicas")
    if count is None:
        detail = f"targetReplicas cannot be nil if you want to scale {kind}"
        yield causes.invalid(f"{path}.targetReplicas", "", detail)
    elif count < 0:
        detail = "targetReplicas should be larger than or equal to 0"
        yield causes.invalid(f"{path}.targetReplicas", count, detail)


def _histories(rule: Json, path: str) -> Iterator[Cause]:
    for name, least in _HISTORY_MIN.items():
        count = _number(rule, name)
        if count is not None and not least <= count <= _HISTORY_MAX:
            yield causes.invalid(f"{path}.{name}", count, f"must be from {least} to {_HISTORY_MAX}")


def _number(rule: Json, name: str) -> int | None:
    value = rule.get(name)
    return value if isinstance(value, int) else None
