"""Actions of Remedies, rendered in the status of the clusters whose conditions match.

The actions are derived when a cluster is rendered. So a watch shows new actions only with the next change of the
cluster, or with its deletion.
"""

from typing import Final

import msgspec
from msgspec import Struct

from events.json_values import objects_at
from events.kube_objects import KubeObject
from events.validation.known_kinds import REMEDY_GROUP
from projections import objects
from projections.port import Queryable

_EQUAL: Final = "Equal"


class _Affinity(Struct, frozen=True, rename="camel"):
    cluster_names: tuple[str, ...] = ()


class _Requirement(Struct, frozen=True, rename="camel"):
    condition_type: str = ""
    operator: str = _EQUAL
    condition_status: str = ""


class _Match(Struct, frozen=True, rename="camel"):
    cluster_condition_match: _Requirement | None = None


class _Spec(Struct, frozen=True, rename="camel"):
    cluster_affinity: _Affinity | None = None
    decision_matches: tuple[_Match, ...] = ()
    actions: tuple[str, ...] = ()


class Remedy(Struct, frozen=True):
    """A Remedy: actions for clusters that meet one of its matches.

    Without an affinity it applies to all clusters; without matches it does not depend on conditions.
    """

    spec: _Spec = _Spec()


_DECODER: Final = msgspec.json.Decoder(Remedy)


def read(rows: Queryable) -> list[Remedy]:
    """Return all Remedies. Malformed ones, which a producer can append without validation, are left out."""
    decoded = (_decoded(stored.manifest) for stored in objects.manifests(rows, REMEDY_GROUP, "Remedy"))
    return [remedy for remedy in decoded if remedy is not None]


def _decoded(manifest: bytes) -> Remedy | None:
    try:
        return _DECODER.decode(manifest)
    except (msgspec.MsgspecError, ValueError):
        return None


def with_actions(cluster: KubeObject, remedies: list[Remedy]) -> KubeObject:
    """Return the Cluster object with the actions of these Remedies in ``status.remedyActions``."""
    if not remedies:
        return cluster
    status = cluster.object_at("status")
    conditions = {
        str(condition.get("type")): str(condition.get("status"))
        for condition in objects_at(status, "conditions")
    }
    actions = {
        action
        for remedy in remedies
        if _is_required(remedy.spec, cluster.name, conditions)
        for action in remedy.spec.actions
    }
    if not actions:
        return cluster
    return cluster.with_fields({"status": {**status, "remedyActions": sorted(actions)}})


def _is_required(spec: _Spec, cluster: str, conditions: dict[str, str]) -> bool:
    if spec.cluster_affinity is not None and cluster not in spec.cluster_affinity.cluster_names:
        return False
    return not spec.decision_matches or any(
        _is_met(match.cluster_condition_match, conditions) for match in spec.decision_matches
    )


def _is_met(required: _Requirement | None, conditions: dict[str, str]) -> bool:
    """Whether the cluster's condition has the required status, or another status if the operator is not Equal.

    False if the cluster does not have the condition.
    """
    if required is None or required.condition_type not in conditions:
        return False
    is_equal = conditions[required.condition_type] == required.condition_status
    return is_equal == (required.operator == _EQUAL)
