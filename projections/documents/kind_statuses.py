"""Statuses of built-in kinds that are more than sums of counts: for one member, and aggregated over all members.

The rules are those of Karmada's default interpreter: equal addresses are shown once, active Jobs of all members are
concatenated; of several times the latest is used, of several phases the most severe. A Pod or PersistentVolume of a
member without a report counts as pending.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypedDict

from events import decisions, job_statuses, limits, shapes, status_values, times, vocabulary
from events.kube_fields import Condition

_BALANCED: Final = frozenset({vocabulary.SERVICE, vocabulary.INGRESS})
_CLAIM: Final = ("v1", "PersistentVolumeClaim")
_PHASES: Final = {
    vocabulary.POD: ("Failed", "Pending", "Running", "Succeeded"),
    ("v1", "PersistentVolume"): ("Failed", "Pending", "Available", "Bound", "Released"),
    _CLAIM: ("Lost", "Pending", "Bound"),
}
"""Phases by severity: the first one that any member reports is the aggregated phase."""

_PENDING: Final = "Pending"


class _Ingress(TypedDict, total=False):
    ip: str
    hostname: str


class _LoadBalancer(TypedDict):
    ingress: list[_Ingress]


class _ActiveJob(TypedDict):
    apiVersion: str
    kind: str
    namespace: str
    name: str


class _State(TypedDict):
    running: dict[str, str]


class _ContainerStatus(TypedDict, total=False):
    ready: bool
    state: _State


class KindStatus(TypedDict, total=False):
    """Fields of a status that this module renders; each kind has some of them."""

    loadBalancer: _LoadBalancer
    conditions: list[Condition]
    active: list[_ActiveJob]
    lastScheduleTime: str
    lastSuccessfulTime: str
    phase: str
    containerStatuses: list[_ContainerStatus]


def of_member(ref: shapes.WorkloadRef, values: dict[str, str]) -> KindStatus | None:
    """Return the reported status of an object in one member; None for kinds without a rule here."""
    kind = ref.api_version, ref.kind
    if kind in _BALANCED:
        return _load_balancer_status(_ingress(values))
    if kind == vocabulary.JOB:
        return _job_end(values)
    if kind == vocabulary.CRON_JOB:
        return _cron_job(ref, [values])
    if kind in _PHASES:
        phase = values.get(status_values.PHASE)
        return _shown(phase or "", [values])
    return None


def aggregate(ref: shapes.WorkloadRef, members: Sequence[decisions.MemberStatus]) -> KindStatus | None:
    """Return the status aggregated over all members; None for kinds without a rule here."""
    kind = ref.api_version, ref.kind
    reported = [member.values for member in members]
    if kind in _BALANCED:
        distinct = {_order(entry): entry for member in members for entry in _ingress(member.values)}
        return _load_balancer_status([distinct[order] for order in sorted(distinct)])
    if kind == vocabulary.CRON_JOB:
        return _cron_job(ref, reported)
    if kind in _PHASES:
        return _shown(_phase(kind, reported), reported)
    return None


def _load_balancer_status(ingress: list[_Ingress]) -> KindStatus:
    return {"loadBalancer": {"ingress": ingress}} if ingress else {}


def _ingress(values: dict[str, str]) -> list[_Ingress]:
    """Entries of a load balancer.

    Addresses and host names are paired if there are equally many, otherwise listed separately.
    """
    addresses = _split(values, status_values.ADDRESSES)
    names = _split(values, status_values.HOST_NAMES)
    if len(addresses) == len(names):
        return [{"ip": ip, "hostname": name} for ip, name in zip(addresses, names, strict=True)]
    return [*({"ip": ip} for ip in addresses), *({"hostname": name} for name in names)]


def _order(entry: _Ingress) -> tuple[bool, str, str]:
    """Sort key of entries: those with a host name come first. Different entries have different keys."""
    name = entry.get("hostname", "")
    return not name, name, entry.get("ip", "")


def _job_end(values: dict[str, str]) -> KindStatus | None:
    conditions: list[Condition] = [
        {"type": end, "status": job_statuses.TRUE}
        for end, path in job_statuses.ENDS.items()
        if values.get(path) == job_statuses.TRUE
    ]
    return {"conditions": conditions} if conditions else None


def _cron_job(ref: shapes.WorkloadRef, reported: Sequence[dict[str, str]]) -> KindStatus:
    active: list[_ActiveJob] = [
        {"apiVersion": "batch/v1", "kind": "Job", "namespace": ref.namespace, "name": name}
        for values in reported
        for name in _split(values, status_values.ACTIVE)
    ]
    scheduled = latest(reported, status_values.LAST_SCHEDULED)
    successful = latest(reported, status_values.LAST_SUCCESSFUL)
    status: KindStatus = {}
    if active:
        status["active"] = active
    if scheduled:
        status["lastScheduleTime"] = scheduled
    if successful:
        status["lastSuccessfulTime"] = successful
    return status


def replica_counts(ref: shapes.WorkloadRef, members: Sequence[decisions.MemberStatus]) -> dict[str, int]:
    """Return the status fields with the numbers of replicas in all members, for kinds with replicas other than Jobs."""
    kind = ref.api_version, ref.kind
    counts = {
        "availableReplicas": sum(member.available for member in members),
        "readyReplicas": sum(member.ready for member in members),
        "replicas": sum(member.replicas for member in members),
    }
    if kind != vocabulary.REPLICA_SET:
        counts["updatedReplicas"] = sum(member.updated for member in members)
    if kind == vocabulary.DEPLOYMENT:
        unavailable = sum(max(member.replicas - member.available, 0) for member in members)
        counts |= {"unavailableReplicas": unavailable} if unavailable else {}
    return counts


def latest(reported: Iterable[Mapping[str, str]], path: str) -> str:
    """Return the latest of the times at a path, empty if there is none; values that are not times are ignored."""
    _, text = max(_times(reported, path), default=(0, ""))
    return text


def earliest(reported: Iterable[Mapping[str, str]], path: str) -> str:
    """Return the earliest of the times at a path, empty if there is none; values that are not times are ignored."""
    _, text = min(_times(reported, path), default=(0, ""))
    return text


def _times(reported: Iterable[Mapping[str, str]], path: str) -> Iterator[tuple[int, str]]:
    for values in reported:
        text = values.get(path, "")
        with contextlib.suppress(ValueError):
            yield times.from_text(text), text


def _phase(kind: tuple[str, str], reported: Sequence[dict[str, str]]) -> str:
    """The aggregated phase; members without a report count as pending, except for PersistentVolumeClaims."""
    otherwise = "" if kind == _CLAIM else _PENDING
    phases = {values.get(status_values.PHASE) or otherwise for values in reported}
    return next((phase for phase in _PHASES[kind] if phase in phases), "")


def _shown(phase: str, reported: Sequence[dict[str, str]]) -> KindStatus:
    status: KindStatus = {"phase": phase} if phase else {}
    if containers := _containers(reported):
        status["containerStatuses"] = containers
    return status


def _containers(reported: Sequence[dict[str, str]]) -> list[_ContainerStatus]:
    """Return the readiness of each container; a ready container has the state ``running``, any other has no state."""
    ready = [flag == "true" for values in reported for flag in _split(values, status_values.CONTAINERS_READY)]
    running: _ContainerStatus = {"ready": True, "state": {"running": {}}}
    waiting: _ContainerStatus = {"ready": False}
    return [running if is_ready else waiting for is_ready in ready]


def _split(values: dict[str, str], path: str) -> list[str]:
    """Split a value into words; without the last word if the value has the maximum length, as it may be incomplete."""
    text = values.get(path, "")
    parts = text.split()
    return parts[:-1] if len(text) >= limits.STATUS_VALUE_CHARS_MAX else parts
