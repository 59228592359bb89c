"""FederatedResourceQuotas: the ResourceQuotas that they assign to clusters, and their status. Pure.

A work with such a ResourceQuota names its assignment in its list of overrides: an ``OverrideRef`` with the offset of
the FederatedResourceQuota and the assignment's index in the spec.
"""

from collections.abc import Iterable
from typing import Final, TypedDict

import msgspec

from engine.domain import reported_statuses
from events import decisions, keys, kube_objects, shapes
from events.json_values import Json, canonical_json, object_at, objects_at

KIND: Final = "FederatedResourceQuota"
QUOTA: Final = ("v1", "ResourceQuota")
NAMESPACE_LABEL: Final = "federatedresourcequota.karmada.io/namespace"
NAME_LABEL: Final = "federatedresourcequota.karmada.io/name"
"""Labels of a Work with the namespace and the name of its FederatedResourceQuota."""

CLAIMED: Final = "claimed"
"""Part of a stored status: how much of the overall limits all bindings use together, per resource name."""
MEMBERS: Final = "members"
"""Part of a stored status: the ``ReportedStatus``."""

_DERIVED_FIELDS: Final = (CLAIMED, MEMBERS)
_DECODE_FIELDS: Final = msgspec.json.Decoder(shapes.Object).decode
_DECODE: Final = msgspec.json.Decoder(dict[str, object]).decode


def assignment_ref(overrides: tuple[shapes.OverrideRef, ...]) -> shapes.OverrideRef | None:
    """Return a work's reference to its quota assignment; None if the work belongs to a binding."""
    return overrides[0] if overrides and overrides[0].kind == KIND else None


def quotas(manifest: bytes | msgspec.Raw) -> list[tuple[str, bytes]]:
    """Return, for each static assignment, its cluster and the manifest of the ResourceQuota."""
    value = kube_objects.decoded(_DECODE, manifest)
    metadata = object_at(value, "metadata")
    api_version, kind = QUOTA
    result: list[tuple[str, bytes]] = []
    for assignment in objects_at(value, "spec", "staticAssignments"):
        quota: Json = {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": metadata.get("name"), "namespace": metadata.get("namespace")},
            "spec": {"hard": object_at(assignment, "hard")},
        }
        result.append((str(assignment.get("clusterName")), canonical_json(quota)))
    return result


class MemberQuota(TypedDict, total=False):
    """The quota of a cluster, as the cluster reported it."""

    clusterName: str
    hard: object
    used: object


class ReportedStatus(TypedDict, total=False):
    """The part of a FederatedResourceQuota's status that comes from the reports of members."""

    overallUsed: dict[str, int | str]
    aggregatedStatus: list[MemberQuota]


def members(reported: Iterable[decisions.MemberStatus]) -> list[MemberQuota]:
    """Return ``status.aggregatedStatus``: the quota of each cluster that has reported one."""
    result: list[MemberQuota] = []
    for member in reported:
        status = reported_statuses.decoded(member.status) or {}
        shown: MemberQuota = {"clusterName": member.cluster}
        if hard := status.get("hard"):
            shown["hard"] = hard
        if used := status.get("used"):
            shown["used"] = used
        if hard or used:
            result.append(shown)
    return result


def object_key(key: str) -> str:
    """Return the key of a FederatedResourceQuota, from the binding key of the ResourceQuota that it assigns."""
    namespace, _, name = key.partition("/")
    return keys.object_key(KIND, namespace, name.removesuffix(f"-{QUOTA[1].lower()}"))


def with_stored_engine_fields(written: shapes.Object, stored: bytes) -> shapes.Object:
    """Return the status that a client wrote, but with the stored values of the parts that only the engine writes."""
    own = _DECODE_FIELDS(stored) if stored else {}
    fields = {name: value for name, value in written.items() if name not in _DERIVED_FIELDS}
    return {**fields, **{name: own[name] for name in _DERIVED_FIELDS if name in own}}


def shown(stored: Json, overall: Json) -> Json:
    """Return the status of a FederatedResourceQuota from its stored parts and the overall limits in its spec.

    Claimed amounts of resources without a limit in the spec are left out: the engine no longer updates them.
    """
    known = {name: value for name, value in stored.items() if name not in _DERIVED_FIELDS}
    of_members = object_at(stored, MEMBERS)
    claimed = {name: amount for name, amount in object_at(stored, CLAIMED).items() if name in overall}
    used = {**object_at(of_members, "overallUsed"), **claimed}
    return {
        **known,
        **of_members,
        **({"overallUsed": used} if used else {}),
        **({"overall": overall} if overall else {}),
    }


def status(data: decisions.StatusAggregated) -> ReportedStatus:
    """Return the part of a FederatedResourceQuota's status that comes from the reports of members."""
    reported: ReportedStatus = {}
    if data.fields:
        reported["overallUsed"] = dict(data.fields)
    if aggregated := members(data.members):
        reported["aggregatedStatus"] = aggregated
    return reported
