"""Statuses of built-in kinds that are not sums of counts: of one member, and aggregated over all members.

The rules are those of Karmada's default interpreter: addresses and active Jobs of all members are
concatenated; of times the latest is used, of phases the most severe. A Pod or PersistentVolume of a member
without a report counts as pending.
"""

from collections.abc import Sequence
from typing import Final

from events import decisions, job_statuses, limits, shapes, status_values, times
from events.json_values import Json

_BALANCED: Final = frozenset({("v1", "Service"), ("networking.k8s.io/v1", "Ingress")})
JOB: Final = ("batch/v1", "Job")
_CRON_JOB: Final = ("batch/v1", "CronJob")
_POD: Final = ("v1", "Pod")
_CLAIM: Final = ("v1", "PersistentVolumeClaim")
_PHASES: Final = {
    _POD: ("Failed", "Pending", "Running", "Succeeded"),
    ("v1", "PersistentVolume"): ("Failed", "Pending", "Available", "Bound", "Released"),
    _CLAIM: ("Lost", "Pending", "Bound"),
}
"""Phases by severity: the first one that any member reports is the aggregated phase."""

_PENDING: Final = "Pending"


def of_member(ref: shapes.WorkloadRef, values: dict[str, str]) -> Json | None:
    """Return the reported status of an object in one member; None for kinds without a rule here."""
    kind = ref.api_version, ref.kind
    if kind in _BALANCED:
        return _balanced(_ingress(values))
    if kind == JOB:
        return _job_end(values)
    if kind == _CRON_JOB:
        return _cron_job(ref, [values])
    if kind in _PHASES:
        phase = values.get(status_values.PHASE)
        return ({"phase": phase} if phase else {}) | _containers([values])
    return None


def over_all(ref: shapes.WorkloadRef, members: Sequence[decisions.MemberStatus]) -> Json | None:
    """Return the status aggregated over all members; None for kinds without a rule here."""
    kind = ref.api_version, ref.kind
    reported = [member.values for member in members]
    if kind in _BALANCED:
        return _balanced([entry for member in members for entry in _ingress(member.values)])
    if kind == _CRON_JOB:
        return _cron_job(ref, reported)
    if kind in _PHASES:
        return _phase(kind, reported) | _containers(reported)
    return None


def _balanced(ingress: list[Json]) -> Json:
    return {"loadBalancer": {"ingress": ingress}} if ingress else {}


def _ingress(values: dict[str, str]) -> list[Json]:
    """Entries of a load balancer.

    Addresses and host names are paired if there are equally many, otherwise listed separately.
    """
    addresses = _split(values, status_values.ADDRESSES)
    names = _split(values, status_values.HOST_NAMES)
    if len(addresses) == len(names):
        return [{"ip": ip, "hostname": name} for ip, name in zip(addresses, names, strict=True)]
    return [*({"ip": ip} for ip in addresses), *({"hostname": name} for name in names)]


def _job_end(values: dict[str, str]) -> Json | None:
    ends = (("Complete", job_statuses.COMPLETE), ("Failed", job_statuses.FAILED))
    conditions = [
        {"type": end, "status": job_statuses.IS_SO}
        for end, path in ends
        if values.get(path) == job_statuses.IS_SO
    ]
    return {"conditions": conditions} if conditions else None


def _cron_job(ref: shapes.WorkloadRef, reported: Sequence[dict[str, str]]) -> Json:
    active = [
        {"apiVersion": "batch/v1", "kind": "Job", "namespace": ref.namespace, "name": name}
        for values in reported
        for name in _split(values, status_values.ACTIVE)
    ]
    scheduled = _latest(reported, status_values.LAST_SCHEDULED)
    successful = _latest(reported, status_values.LAST_SUCCESSFUL)
    return {
        **({"active": active} if active else {}),
        **({"lastScheduleTime": scheduled} if scheduled else {}),
        **({"lastSuccessfulTime": successful} if successful else {}),
    }


def _latest(reported: Sequence[dict[str, str]], path: str) -> str:
    """The latest of the times at a path; values that are not times are ignored."""
    timestamps: list[tuple[int, str]] = []
    for values in reported:
        text = values.get(path, "")
        try:
            timestamps.append((times.from_text(text), text))
        except ValueError:
            continue
    return max(timestamps)[1] if timestamps else ""


def _phase(kind: tuple[str, str], reported: Sequence[dict[str, str]]) -> Json:
    """The aggregated phase; members without a report count as pending, except for PersistentVolumeClaims."""
    otherwise = "" if kind == _CLAIM else _PENDING
    phases = {values.get(status_values.PHASE) or otherwise for values in reported}
    first = next((phase for phase in _PHASES[kind] if phase in phases), "")
    return {"phase": first} if first else {}


def _containers(reported: Sequence[dict[str, str]]) -> Json:
    """Readiness of each container; the state is known (running) only for ready ones."""
    ready = [flag == "true" for values in reported for flag in _split(values, status_values.CONTAINERS_READY)]
    running: Json = {"ready": True, "state": {"running": {}}}
    waiting: Json = {"ready": False}
    return {"containerStatuses": [running if is_ready else waiting for is_ready in ready]} if ready else {}


def _split(values: dict[str, str], path: str) -> list[str]:
    """Split a value into words; drops the last word of a value of maximal length, since it may have been cut."""
    text = values.get(path, "")
    parts = text.split()
    return parts[:-1] if len(text) >= limits.STATUS_VALUE_CHARS_MAX else parts
