"""A member cluster: its spec as clients set it, what it reports, and how inputs change both."""

from itertools import pairwise
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from events import clusters, enums, shapes

READY: Final = str(True)
"""Status of the Ready condition of a ready cluster."""

UNKNOWN: Final = "Unknown"
"""Status of the Ready condition of a cluster that has not reported within its grace period."""


_GIB: Final = ("0", "4Gi", "16Gi", "32Gi", "64Gi", "128Gi", "256Gi", "512Gi", "1Ti")
_CPUS: Final = ("0", "1", "2", "4", "8", "16", "32", "64", "128")
UNBOUNDED: Final = str(2**63 - 1)
"""The upper bound of the highest grade of nodes."""

DEFAULT_MODELS: Final = tuple(
    clusters.ResourceGrade(
        grade=grade,
        ranges=(
            clusters.Quantities(name="cpu", min=cpus[0], max=cpus[1]),
            clusters.Quantities(name="memory", min=memory[0], max=memory[1]),
        ),
    )
    for grade, (cpus, memory) in enumerate(
        zip(pairwise((*_CPUS, UNBOUNDED)), pairwise((*_GIB, UNBOUNDED)), strict=True)
    )
)
"""Karmada's default grades of nodes, for clusters whose client sets no resource models."""


class Spec(Struct, frozen=True, array_like=True):
    """Fields of a cluster that clients set, named as in ``ClusterJoined``."""

    labels: dict[str, str]
    provider: str
    region: str
    zones: tuple[str, ...]
    taints: tuple[clusters.Taint, ...]
    apis: tuple[clusters.ApiKind, ...]
    resource_models: tuple[clusters.ResourceGrade, ...]
    sync_mode: enums.SyncMode
    api_endpoint: str
    id: str = ""
    proxy_url: str = ""
    secret_ref: clusters.SecretRef | None = None
    impersonator_secret_ref: clusters.SecretRef | None = None
    kubernetes_version: str = ""
    annotations: dict[str, str] = {}
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()

    @property
    def models_in_use(self) -> tuple[clusters.ResourceGrade, ...]:
        """The resource models whose free nodes agents count: Karmada's default models if clients set none."""
        return self.resource_models or DEFAULT_MODELS


class Health(Struct, frozen=True, array_like=True, gc=False):
    """Health of the cluster's control plane.

    ``status`` is the status of the condition Ready: True, False, or Unknown if no report arrived in time.
    ``since_ms`` is when the status last changed, ``heard_ms`` the time of the last report. The next report is
    due within ``grace_seconds`` (0: no limit).
    """

    status: str
    reason: str
    message: str
    since_ms: int
    heard_ms: int
    grace_seconds: int


class Cluster(Struct, frozen=True, array_like=True):
    """A member cluster: its spec and its last reports. The ``quotas`` of a capacity report are not stored.

    ``leaving_ms`` is the time of the request to delete the cluster; None if there is none. It is 0 if the event of the
    request has no time.
    """

    spec: Spec
    capacity: clusters.CapacityReported | None = None
    health: Health | None = None
    leaving_ms: int | None = None
    conditions: tuple[clusters.ClusterCondition, ...] = ()

    @property
    def statuses(self) -> dict[str, str]:
        """The status of each condition that clients report, by type; the condition Ready is not one of these."""
        return {condition.type: condition.status for condition in self.conditions}


_ClusterT = TypeVar("_ClusterT", bound=Cluster)


def with_event(cluster: _ClusterT, data: shapes.Event, at_ms: int) -> _ClusterT:
    """Apply an event about a cluster and return the result; ClusterLeft is not applied here.

    A deletion cannot be cancelled: ClusterJoined leaves ``leaving_ms`` unchanged.
    """
    replace = msgspec.structs.replace
    match data:
        case clusters.ClusterHealthChanged():
            return replace(cluster, health=_health_after(cluster.health, data, at_ms))
        case clusters.CapacityReported():
            return replace(cluster, capacity=replace(data, quotas=()))
        case clusters.ClusterConditionsReported():
            return replace(cluster, conditions=_conditions_after(cluster.conditions, data, at_ms))
        case clusters.ClusterJoined():
            return replace(cluster, spec=joined(data, at_ms))
        case clusters.ClusterLeaving():
            return cluster if cluster.leaving_ms is not None else replace(cluster, leaving_ms=at_ms)
        case _:
            return replace(cluster, spec=edited(cluster.spec, data, at_ms))


def _health_after(
    previous: Health | None, report: clusters.ClusterHealthChanged, at_ms: int
) -> Health | None:
    """Return a cluster's health after a report.

    A ``silent`` report says that no report arrived in time. It changes nothing if a newer report has arrived, or if
    none has arrived since the cluster joined.
    """
    if report.silent and (previous is None or previous.heard_ms > report.heard_ms):
        return previous
    status = UNKNOWN if report.silent else str(report.ready)
    since_ms = previous.since_ms if previous is not None and previous.status == status else at_ms
    if report.silent and previous is not None:
        heard_ms, grace_seconds = previous.heard_ms, previous.grace_seconds
    else:
        heard_ms, grace_seconds = at_ms, report.grace_seconds
    return Health(status, report.reason, report.message, since_ms, heard_ms, grace_seconds)


def _conditions_after(
    previous: tuple[clusters.ClusterCondition, ...], report: clusters.ClusterConditionsReported, at_ms: int
) -> tuple[clusters.ClusterCondition, ...]:
    """Return the reported conditions with their transition times.

    A missing time is taken from the previous condition with the same type and status; otherwise it is ``at_ms``.
    """
    since = {(old.type, old.status): old.last_transition_ms for old in previous}
    replace = msgspec.structs.replace
    return tuple(
        condition
        if condition.last_transition_ms is not None
        else replace(condition, last_transition_ms=since.get((condition.type, condition.status)) or at_ms)
        for condition in report.conditions
    )


def joined(data: clusters.ClusterJoined, at_ms: int) -> Spec:
    """Return the spec of a cluster that joins; taints without a time get ``at_ms``."""
    fields = msgspec.structs.asdict(data)
    fields["taints"] = tuple(_with_time(taint, at_ms) for taint in data.taints)
    return Spec(**{name: fields[name] for name in Spec.__struct_fields__})


def edited(spec: Spec, data: shapes.Event, at_ms: int) -> Spec:
    """Return the spec after an event that changes one of its parts."""
    replace = msgspec.structs.replace
    match data:
        case clusters.ClusterLabelled(labels=labels):
            edited_spec = replace(spec, labels=labels)
        case clusters.ClusterDescribed():
            edited_spec = replace(spec, provider=data.provider, region=data.region, zones=data.zones)
        case clusters.ClusterApisReported(apis=apis):
            return replace(spec, apis=apis)
        case clusters.ClusterTainted(taint=taint):
            edited_spec = replace(spec, taints=_with_taint(spec.taints, _with_time(taint, at_ms)))
        case clusters.ClusterUntainted(key=key, effect=effect):
            edited_spec = replace(spec, taints=_without_taint(spec.taints, key, effect))
        case _:
            return spec
    return replace(edited_spec, managed_fields=data.managed_fields or spec.managed_fields)


def _with_taint(taints: tuple[clusters.Taint, ...], taint: clusters.Taint) -> tuple[clusters.Taint, ...]:
    """Return the taints with ``taint`` added; it replaces the one with the same key and effect.

    If that one has the same value too, it stays and keeps its time.
    """
    replaced = [old for old in taints if (old.key, old.effect) == (taint.key, taint.effect)]
    if replaced and replaced[0].value == taint.value:
        return taints
    return (*(old for old in taints if old not in replaced), taint)


def _without_taint(taints: tuple[clusters.Taint, ...], key: str, effect: str) -> tuple[clusters.Taint, ...]:
    """Return the taints except those with this key and effect; an empty effect matches all."""
    return tuple(old for old in taints if old.key != key or effect not in ("", old.effect))


def _with_time(taint: clusters.Taint, at_ms: int) -> clusters.Taint:
    """Return the taint; if it has no time, set the time to ``at_ms``."""
    return taint if taint.time_added_ms is not None else msgspec.structs.replace(taint, time_added_ms=at_ms)
