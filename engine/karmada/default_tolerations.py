"""Default tolerations of policies for failed clusters; an option of the server, off by default.

Karmada before 1.14 added tolerations of 300 seconds to every policy; later releases add none. Such tolerations have a
disadvantage: a cluster with a tolerated taint stays a candidate for scheduling, although the toleration is limited in
time.
"""

from typing import Final

from msgspec import Struct

from engine.kubeapi.values.taints import Effect
from events.json_values import Json, as_list, as_object, objects_at
from events.kube_objects import KubeObject

NOT_READY: Final = "cluster.karmada.io/not-ready"
UNREACHABLE: Final = "cluster.karmada.io/unreachable"


class TolerationSeconds(Struct, frozen=True, kw_only=True):
    """Seconds of toleration per taint; None adds no toleration, 0 evicts at once."""

    not_ready: int | None = None
    unreachable: int | None = None


def with_tolerations(policy: KubeObject, seconds: TolerationSeconds) -> KubeObject:
    """Return a policy with tolerations added for the taints NOT_READY and UNREACHABLE, with the effect NoExecute.

    None is added for a taint whose seconds are None, or that the policy tolerates itself.
    """
    spec = policy.object_at("spec")
    placement = as_object(spec.get("placement", {}))
    tolerations = None if placement is None else as_list(placement.get("clusterTolerations", []))
    if placement is None or tolerations is None:
        return policy
    seconds_by_key = {NOT_READY: seconds.not_ready, UNREACHABLE: seconds.unreachable}
    added: list[object] = [
        {"key": key, "operator": "Exists", "effect": Effect.NO_EXECUTE.value, "tolerationSeconds": count}
        for key, count in seconds_by_key.items()
        if count is not None
        and not any(_matches_taint(toleration, key) for toleration in objects_at(tolerations))
    ]
    if not added:
        return policy
    placed = {**placement, "clusterTolerations": [*tolerations, *added]}
    return policy.with_fields({"spec": {**spec, "placement": placed}})


def _matches_taint(toleration: Json, key: str) -> bool:
    effect = toleration.get("effect") or Effect.NO_EXECUTE
    return (toleration.get("key") or key) == key and effect == Effect.NO_EXECUTE
