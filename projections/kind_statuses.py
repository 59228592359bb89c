"""Statuses of built-in kinds that are no sums of numbers: of one member, and of all members together.

The rules are those of the reference's default interpreter: addresses and running Jobs of all members stand side by
side, of times the last counts, of phases the one that asks most for attention. Of a member that has told nothing yet
a Pod or a volume counts as pending.
"""

from collections.abc import Sequence
from typing import Final

from events import decisions, limits, shapes, status_values, times

Json = dict[str, object]

_BALANCED: Final = frozenset({("v1", "Service"), ("networking.k8s.io/v1", "Ingress")})
_CRON_JOB: Final = ("batch/v1", "CronJob")
_POD: Final = ("v1", "Pod")
_CLAIM: Final = ("v1", "PersistentVolumeClaim")
_PHASES: Final = {
    _POD: ("Failed", "Pending", "Running", "Succeeded"),
    ("v1", "PersistentVolume"): ("Failed", "Pending", "Available", "Bound", "Released"),
    _CLAIM: ("Lost", "Pending", "Bound"),
}
"""Those that count before others come first."""

_PENDING: Final = "Pending"


def of_member(ref: shapes.WorkloadRef, values: dict[str, str]) -> Json | None:
    """What a member told of an object's status; None for kinds without a rule here."""
    kind = ref.api_version, ref.kind
    if kind in _BALANCED:
        return _balanced(_ingress(values))
    if kind == _CRON_JOB:
        return _cron_job(ref, [values])
    if kind in _PHASES:
        phase = values.get(status_values.PHASE)
        return ({"phase": phase} if phase else {}) | _containers([values])
    return None


def over_all(ref: shapes.WorkloadRef, members: Sequence[decisions.MemberStatus]) -> Json | None:
    """What stands for the statuses of all members; None for kinds without a rule here."""
    kind = ref.api_version, ref.kind
    told = [each.values for each in members]
    if kind in _BALANCED:
        # The cluster's name says where an address is from that has none of its own.
        return _balanced(
            [{"hostname": each.cluster, **entry} for each in members for entry in _ingress(each.values)]
        )
    if kind == _CRON_JOB:
        return _cron_job(ref, told)
    if kind in _PHASES:
        return _phase(kind, told) | _containers(told)
    return None


def _balanced(ingress: list[Json]) -> Json:
    return {"loadBalancer": {"ingress": ingress}} if ingress else {}


def _ingress(values: dict[str, str]) -> list[Json]:
    """The entries of a load balancer: as many addresses as names are one entry each, otherwise each is its own."""
    addresses = _words(values, status_values.ADDRESSES)
    names = _words(values, status_values.HOST_NAMES)
    if len(addresses) == len(names):
        return [{"ip": ip, "hostname": name} for ip, name in zip(addresses, names, strict=True)]
    return [*({"ip": ip} for ip in addresses), *({"hostname": name} for name in names)]


def _cron_job(ref: shapes.WorkloadRef, told: Sequence[dict[str, str]]) -> Json:
    active = [
        {"apiVersion": "batch/v1", "kind": "Job", "namespace": ref.namespace, "name": name}
        for values in told
        for name in _words(values, status_values.ACTIVE)
    ]
    scheduled = _latest(told, status_values.LAST_SCHEDULED)
    successful = _latest(told, status_values.LAST_SUCCESSFUL)
    return {
        **({"active": active} if active else {}),
        **({"lastScheduleTime": scheduled} if scheduled else {}),
        **({"lastSuccessfulTime": successful} if successful else {}),
    }


def _latest(told: Sequence[dict[str, str]], path: str) -> str:
    """The last of the times at a path; what is no time says nothing."""
    found: list[tuple[int, str]] = []
    for values in told:
        text = values.get(path, "")
        try:
            found.append((times.from_text(text), text))
        except ValueError:
            continue
    return max(found)[1] if found else ""


def _phase(kind: tuple[str, str], told: Sequence[dict[str, str]]) -> Json:
    """The phase over all members; a claim's is that of the members which told one."""
    otherwise = "" if kind == _CLAIM else _PENDING
    phases = {values.get(status_values.PHASE) or otherwise for values in told}
    first = next((phase for phase in _PHASES[kind] if phase in phases), "")
    return {"phase": first} if first else {}


def _containers(told: Sequence[dict[str, str]]) -> Json:
    """Whether each container is ready; a ready one runs, of others nobody said why."""
    ready = [word == "true" for values in told for word in _words(values, status_values.CONTAINERS_READY)]
    running: Json = {"ready": True, "state": {"running": {}}}
    waiting: Json = {"ready": False}
    return {"containerStatuses": [running if each else waiting for each in ready]} if ready else {}


def _words(values: dict[str, str], path: str) -> list[str]:
    """The words of a value; the last of one that was cut may be half a word, and is left out."""
    text = values.get(path, "")
    words = text.split()
    return words[:-1] if len(text) >= limits.STATUS_VALUE_CHARS_MAX else words
