"""HorizontalPodAutoscalers of a member: they scale their targets by writes, as clients of the member do.

A target that the control plane manages is scaled only if its template leaves the replicas to the members; otherwise
propagation and autoscaler would undo each other's writes.
"""

from typing import Final, TypedDict

from engine.domain import marks, replica_fields
from engine.kubeapi.values import quantity
from engine.simulation import kept_fields, unmanaged
from engine.simulation.state import MemberState, Workload
from engine.works import autoscalers
from engine.works.autoscalers import Metric, Scaler
from events import clusters, times
from events.json_values import Json
from events.kube_fields import Condition, condition
from events.kube_objects import KubeObject

_SCALED_AT: Final = "lastScaleTime"


class _Status(TypedDict, total=False):
    observedGeneration: int
    currentReplicas: int
    desiredReplicas: int
    currentMetrics: list[Json]
    conditions: list[Condition]


def writes(state: MemberState, at_ms: int) -> list[clusters.MemberObjectApplied]:
    """Return the writes by which autoscalers scale changed targets: the new replicas, and the time of scaling."""
    result: list[clusters.MemberObjectApplied] = []
    targets, state.to_scale = state.to_scale, {}
    for target in targets:
        key = next(iter(state.scaled.get(target, ())), None)
        workload = _target(state, target)
        if key is None or workload is None or not workload.replicas or _refusal(workload):
            continue
        _, scaler = state.scalers[key]
        count = scaler.limited(_desired_replicas(scaler, workload, workload.replicas))
        if count != workload.replicas:
            result += _written(state, target, replicas=count)
            result += _written(state, key, status={_SCALED_AT: times.to_seconds_text(at_ms)})
    return result


def status(state: MemberState, workload: Workload, scaler: Scaler) -> _Status:
    """Return an autoscaler's status without ``lastScaleTime``; ``workload`` is the autoscaler, not its target."""
    shown: _Status = {"observedGeneration": max(workload.generation, 1)}
    key, _ = state.scalers.get(workload.object_key, ("", scaler))
    target = _target(state, key)
    if target is None or target.replicas is None:
        message = f'{scaler.target_kind} "{scaler.target_name}" not found'
        missing = _condition(workload, "AbleToScale", "FailedGetScale", message, well=False)
        return {**shown, "conditions": [missing]}
    shown["currentReplicas"] = count = target.admitted + target.pending
    if refusal := _refusal(target):
        refused = _condition(workload, "AbleToScale", "FailedUpdateScale", refusal, well=False)
        return {**shown, "desiredReplicas": count, "conditions": [refused]}
    able = _condition(
        workload, "AbleToScale", "ReadyForNewScale", "recommended size matches current size", well=True
    )
    if not target.replicas:
        message = "scaling is disabled since the replica count of the target is zero"
        idle = _condition(workload, "ScalingActive", "ScalingDisabled", message, well=False)
        return {**shown, "desiredReplicas": 0, "conditions": [able, idle]}
    load, requests = load_of(target), dict(target.template.amounts)
    followed = scaler.followed(load or {}, requests)
    shown["desiredReplicas"] = scaler.limited(_desired_replicas(scaler, target, target.replicas))
    if metrics := [_current(metric, (load or {})[metric.name], count, requests) for metric in followed]:
        shown["currentMetrics"] = metrics
    shown["conditions"] = [
        able,
        _activity(workload, target, followed, load),
        _limits(workload, scaler, target),
    ]
    return shown


def load_of(workload: Workload) -> dict[str, int] | None:
    """Return the load of all pods of a workload, by metric in billionths; None if its load annotation is malformed."""
    text = workload.template.load or dict(workload.kept.annotations).get(autoscalers.LOAD, "")
    return autoscalers.load_in(text)


def _desired_replicas(scaler: Scaler, workload: Workload, count: int) -> int:
    return scaler.desired_replicas(count, load_of(workload) or {}, dict(workload.template.amounts))


def _target(state: MemberState, key: str) -> Workload | None:
    return unmanaged.running(state, key) or state.workloads.get(key)


def _refusal(target: Workload) -> str:
    """Return why a target can't be scaled, or an empty text."""
    if target.preserved or not (target.is_unmanaged or target.template.retains):
        return (
            f"the control plane decides on the replicas of {target.ref.kind} {target.ref.name}: "
            f'label its template {marks.RETAIN_REPLICAS}: "true" to leave them to its members'
        )
    return ""


def _written(
    state: MemberState, key: str, *, replicas: int | None = None, status: Json | None = None
) -> list[clusters.MemberObjectApplied]:
    """Return the write that sets the replicas or the status of an object; an empty list for an unknown object."""
    item, workload = state.unmanaged.get(key), state.managed(key)
    if item is not None:
        value = KubeObject.from_json(item.manifest)
        path = replica_fields.path_of(item.ref.api_version, item.ref.kind)
    elif workload is not None:
        value, path = kept_fields.manifest_of_kept(workload), kept_fields.REPLICAS
    else:
        return []
    if replicas is not None:
        value = KubeObject(replica_fields.with_field(value.document, path, replicas))
    if status is not None:
        value = value.with_fields({"status": {**value.object_at("status"), **status}})
    return [clusters.MemberObjectApplied(name=state.spec.name, manifest=value.raw)]


def _activity(
    workload: Workload, target: Workload, followed: list[Metric], load: dict[str, int] | None
) -> Condition:
    if followed:
        message = "the HPA was able to successfully calculate a replica count"
        return _condition(workload, "ScalingActive", "ValidMetricFound", message, well=True)
    annotation = f"annotation {autoscalers.LOAD} of {target.ref.kind} {target.ref.name}"
    message = (
        f"the {annotation} is malformed; write it like cpu=1500m,requests=20"
        if load is None
        else f"no metric has a load and a target for each pod; set the load with the {annotation}"
    )
    return _condition(workload, "ScalingActive", "FailedGetResourceMetric", message, well=False)


def _limits(workload: Workload, scaler: Scaler, target: Workload) -> Condition:
    desired = _desired_replicas(scaler, target, target.replicas or 0)
    reason, text = "DesiredWithinRange", "the desired count is within the acceptable range"
    if desired < scaler.least:
        reason, text = "TooFewReplicas", "the desired replica count is less than the minimum replica count"
    elif desired > scaler.most:
        reason, text = "TooManyReplicas", "the desired replica count is more than the maximum replica count"
    return _condition(workload, "ScalingLimited", reason, text, well=desired != scaler.limited(desired))


def _current(metric: Metric, load: int, count: int, requests: dict[str, int]) -> Json:
    average = load // max(count, 1)
    used: Json = {"averageValue": quantity.of_nano(metric.name, -(-average // 1_000_000) * 1_000_000)}
    if metric.share is not None:
        used["averageUtilization"] = average * autoscalers.PERCENT // requests[metric.name]
    field = metric.source[:1].lower() + metric.source[1:]
    named: Json = {"name": metric.name}
    if metric.source not in autoscalers.RESOURCES:
        named = {"metric": named}
    return {"type": metric.source, field: {**named, "current": used}}


def _condition(workload: Workload, kind: str, reason: str, message: str, *, well: bool) -> Condition:
    return condition(kind, str(well), reason, message, times.to_seconds_text(workload.created_ms))
