"""Validation of workloads, their statuses, disruption budgets and priorities, from the published Kubernetes API."""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.kubeapi.admission.rules import pods
from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.schema.schemas import Scalar
from engine.kubeapi.schema.types.parsing import named
from engine.kubeapi.values import schedules
from engine.kubeapi.values.selectors import is_met
from events.json_values import Json, as_object, at, object_at, objects_at, texts
from events.kube_objects import KubeObject

_PRIORITY_MAX: Final = 1_000_000_000

_BOUNDED_COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "DaemonSet": (),
    "Deployment": ("updatedReplicas", "readyReplicas", "availableReplicas"),
    "ReplicaSet": ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
    "StatefulSet": ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
}
"""Counts that must not exceed ``status.replicas``, by kind."""

_NOTHING: Final = (0, "0%")
_JOB_RESTARTS: Final = ("OnFailure", "Never")
_JOB_FIXED: Final = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
_SET_FIELDS: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_SET_WORDS: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy',"
    " 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def deployment(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    yield from words.not_negative(spec, "replicas", "spec")
    yield from _selected(spec, "deployment", second_error=": invalid label selector")
    yield from _strategy(object_at(spec, "strategy"))
    yield from words.not_negative(spec, "minReadySeconds", "spec")
    yield from words.not_negative(spec, "revisionHistoryLimit", "spec")
    yield from words.not_negative(spec, "progressDeadlineSeconds", "spec")
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if words.is_number(deadline) and words.is_number(ready) and deadline <= ready:
        yield causes.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    if live is not None:
        yield from _same_selector(spec, live)


def replica_set(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    yield from words.not_negative(spec, "replicas", "spec")
    yield from words.not_negative(spec, "minReadySeconds", "spec")
    yield from _selected(spec, "replicaset")
    if live is not None:
        yield from _same_selector(spec, live)


def daemon_set(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    if live is not None:
        yield from _same_selector(spec, live)
    yield from _selected(spec, "daemonset")
    yield from words.not_negative(spec, "minReadySeconds", "spec")
    strategy = object_at(spec, "updateStrategy")
    type_name, rolling = strategy.get("type"), object_at(strategy, "rollingUpdate")
    if type_name not in ("RollingUpdate", "OnDelete"):
        yield causes.unsupported("spec.updateStrategy", _typed(strategy), ("RollingUpdate", "OnDelete"))
    elif type_name == "RollingUpdate":
        most, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        path = "spec.updateStrategy.rollingUpdate"
        for name in ("maxUnavailable", "maxSurge"):
            yield from words.amount(rolling.get(name), f"{path}.{name}")
            yield from words.at_most_all(rolling.get(name), f"{path}.{name}")
        if most in _NOTHING and surge in _NOTHING:
            yield causes.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    yield from words.not_negative(spec, "revisionHistoryLimit", "spec")


def stateful_set(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        yield causes.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = object_at(spec, "updateStrategy")
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        detail = "must be 'RollingUpdate' or 'OnDelete'"
        yield causes.invalid("spec.updateStrategy", _typed(strategy), detail)
    rolling = object_at(strategy, "rollingUpdate")
    yield from words.not_negative(rolling, "partition", "spec.updateStrategy.rollingUpdate")
    yield from words.not_negative(spec, "replicas", "spec")
    yield from words.not_negative(spec, "minReadySeconds", "spec")
    yield from words.not_negative(object_at(spec, "ordinals"), "start", "spec.ordinals")
    yield from _selected(spec, "statefulset", second_error="")
    if live is not None:
        old = live.object_at("spec")
        if any(old.get(name) != spec.get(name) for name in {*old, *spec} if name not in _SET_FIELDS):
            yield causes.forbidden("spec", _SET_WORDS)


def job(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    yield from _job_spec(spec, "spec")
    if live is not None:
        old = live.object_at("spec")
        # An Indexed Job is scaled by a change of completions and parallelism to the same number.
        is_scaled = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get(
            "parallelism"
        )
        if old.get("completions") != spec.get("completions") and not is_scaled:
            yield causes.invalid("spec.completions", spec.get("completions"), words.IMMUTABLE)
        # A suspended Job's choice of nodes may change, even in the write that resumes it: job queues do that.
        part = _without_nodes if old.get("suspend") is True else object_at
        if part(old.get("template")) != part(spec.get("template")):
            yield causes.invalid("spec.template", spec.get("template"), words.IMMUTABLE)
        for name in _JOB_FIXED:
            if old.get(name) != spec.get(name):
                yield causes.invalid(f"spec.{name}", spec.get(name), words.IMMUTABLE)


def _without_nodes(template: object) -> Json:
    """Return a pod template without labels, annotations and the choice of nodes."""
    pod = object_at(template, "spec")
    metadata = {**object_at(template, "metadata"), "labels": None, "annotations": None}
    affinity = {**object_at(pod, "affinity"), "nodeAffinity": None}
    spec = {**pod, "affinity": affinity, "nodeSelector": None, "tolerations": None, "schedulingGates": None}
    return {**object_at(template), "metadata": metadata, "spec": spec}


def cron_job(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    schedule = str(spec.get("schedule") or "")
    if not schedule:
        yield causes.required("spec.schedule")
    elif "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield causes.invalid("spec.schedule", schedule, detail)
    elif reason := schedules.fault(schedule):
        yield causes.invalid("spec.schedule", schedule, reason)
    zone = spec.get("timeZone")
    if isinstance(zone, str) and (reason := _zone_fault(zone)):
        yield causes.invalid("spec.timeZone", zone, reason)
    yield from words.not_negative(spec, "startingDeadlineSeconds", "spec")
    yield from words.one_of(spec, "concurrencyPolicy", "spec", ("Allow", "Forbid", "Replace"))
    template = object_at(spec, "jobTemplate")
    yield from _job_spec(object_at(template, "spec"), "spec.jobTemplate.spec")
    yield from words.not_negative(spec, "successfulJobsHistoryLimit", "spec")
    yield from words.not_negative(spec, "failedJobsHistoryLimit", "spec")


def _zone_fault(zone: str) -> str:
    if not zone:
        return "timeZone must be nil or non-empty string"
    if zone.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    return "" if schedules.is_zone(zone) else f"unknown time zone {zone}"


def _job_spec(spec: Json, path: str) -> Iterator[Cause]:
    for name in (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ):
        yield from words.not_negative(spec, name, path)
    mode = spec.get("completionMode")
    yield from words.one_of(spec, "completionMode", path, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and spec.get("completions") is None:
        yield causes.required(f"{path}.completions", "when completion mode is Indexed")
    template = object_at(spec, "template")
    yield from pods.of_template(template, f"{path}.template")
    restart = at(template, "spec", "restartPolicy")
    where = f"{path}.template.spec.restartPolicy"
    if restart in (None, "", "Always"):
        yield causes.required(where, 'valid values: "OnFailure", "Never"')
    elif restart not in _JOB_RESTARTS:
        yield causes.unsupported(where, restart, _JOB_RESTARTS)


def _selected(spec: Json, kind: str, second_error: str | None = None) -> Iterator[Cause]:
    """Validate selector and template, and that they match.

    Some kinds report an invalid selector twice; ``second_error`` is then the text appended to the second error. None
    means that the kind reports it once.
    """
    selector = as_object(spec.get("selector"))
    template = object_at(spec, "template")
    labels = at(template, "metadata", "labels")
    is_readable = True
    if selector is None:
        if kind != "daemonset":
            yield causes.required("spec.selector")
    else:
        wrong = list(words.selector(selector, "spec.selector"))
        yield from wrong
        is_readable = not wrong
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield causes.invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
    if not is_readable and second_error is not None:
        error = causes.invalid("spec.selector", selector, "")
        message = error.message.removesuffix(": ") + second_error
        yield Cause(field="spec.selector", reason="FieldValueInvalid", message=message)
        return
    if not is_readable:
        return
    fits = selector is not None and _matches(selector, object_at(labels))
    if not fits and (selector is None or selector.get("matchLabels") or selector.get("matchExpressions")):
        detail = "`selector` does not match template `labels`"
        yield causes.invalid("spec.template.metadata.labels", labels, detail)
    # Containers may mount these: each pod of a StatefulSet gets a volume for each claim template.
    claims = [KubeObject(claim).name for claim in objects_at(spec, "volumeClaimTemplates")]
    yield from pods.of_template(template, "spec.template", claims)
    pod = object_at(template, "spec")
    restart = pod.get("restartPolicy")
    if restart not in ("Always", None):
        yield causes.unsupported("spec.template.spec.restartPolicy", restart, ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield causes.forbidden("spec.template.spec.activeDeadlineSeconds", detail)


def _same_selector(spec: Json, live: KubeObject) -> Iterator[Cause]:
    if live.at("spec", "selector") != spec.get("selector"):
        yield causes.invalid("spec.selector", spec.get("selector"), words.IMMUTABLE)


def _strategy(strategy: Json) -> Iterator[Cause]:
    type_name, rolling = strategy.get("type"), as_object(strategy.get("rollingUpdate"))
    path = "spec.strategy.rollingUpdate"
    if type_name not in ("Recreate", "RollingUpdate"):
        yield causes.unsupported("spec.strategy", _typed(strategy), ("Recreate", "RollingUpdate"))
    elif type_name == "Recreate":
        if rolling is not None:
            yield causes.forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
    else:
        update = rolling or {}
        most, surge = update.get("maxUnavailable"), update.get("maxSurge")
        yield from words.amount(most, f"{path}.maxUnavailable")
        yield from words.amount(surge, f"{path}.maxSurge")
        if most in _NOTHING and surge in _NOTHING:
            yield causes.invalid(f"{path}.maxUnavailable", most, "may not be 0 when `maxSurge` is 0")
        yield from words.at_most_all(most, f"{path}.maxUnavailable")


def _typed(strategy: Json) -> Json:
    """Return a strategy with the Go field names that the API server prints in errors."""
    return {"Type": strategy.get("type"), "RollingUpdate": None}


def _matches(selector: Json, labels: Json) -> bool:
    match_labels = object_at(selector, "matchLabels")
    if any(labels.get(name) != text for name, text in match_labels.items()):
        return False
    for term in objects_at(selector, "matchExpressions"):
        key = str(term.get("key"))
        label = str(labels[key]) if key in labels else None
        if not is_met(str(term.get("operator")), label, texts(term.get("values"))):
            return False
    return True


def disruption_budget(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield causes.whole("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name, limit in (("minAvailable", least), ("maxUnavailable", most)):
        yield from words.amount(limit, f"spec.{name}")
        yield from words.at_most_all(limit, f"spec.{name}")
    yield from words.selector(spec.get("selector"), "spec.selector")
    yield from words.one_of(spec, "unhealthyPodEvictionPolicy", "spec", ("AlwaysAllow", "IfHealthyBudget"))


def priority_class(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    name = value.name
    is_systems = name in ("system-node-critical", "system-cluster-critical")
    number = value.at("value")
    if name.startswith("system-") and not is_systems:
        detail = (
            "priority class names with 'system-' prefix are reserved for system use only."
            f" error: {name} is not a known system priority class"
        )
        yield causes.forbidden("metadata.name", detail)
    elif words.is_number(number) and number > _PRIORITY_MAX and not is_systems:
        detail = f"maximum allowed value of a user defined priority is {_PRIORITY_MAX}"
        yield causes.forbidden("value", detail)
    yield from words.one_of(value.document, "preemptionPolicy", "", ("PreemptLowerPriority", "Never"))
    if live is not None and (live.at("value") or 0) != (number or 0):
        yield causes.forbidden("value", "may not be changed in an update.")


def status_faults(resource: Resource, status: Json) -> Iterator[Cause]:
    """Yield the errors of a status; none for kinds outside apps/v1."""
    if resource.group != "apps" or resource.kind not in _BOUNDED_COUNTS:
        return
    for name, field in named(f"apps.{resource.kind}Status").fields.items():
        if isinstance(field.schema, Scalar) and field.schema.form == "int":
            yield from words.not_negative(status, name, "status")
    counts = _BOUNDED_COUNTS[resource.kind]
    for name in counts:
        if _count(status, name) > _count(status, "replicas"):
            detail = "cannot be greater than status.replicas"
            yield causes.invalid(f"status.{name}", _count(status, name), detail)
    if counts and _count(status, "availableReplicas") > _count(status, "readyReplicas"):
        ready = "status.readyReplicas" if resource.kind == "StatefulSet" else "readyReplicas"
        available = _count(status, "availableReplicas")
        yield causes.invalid("status.availableReplicas", available, f"cannot be greater than {ready}")


def _count(status: Json, name: str) -> int:
    value = status.get(name)
    return value if isinstance(value, int) else 0
