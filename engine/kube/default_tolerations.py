"""For how long a policy tolerates clusters that fail, where the policy doesn't say: an option, off unless it is given.

Releases of the reference before 1.14 gave every policy 300 seconds; later ones give none. A toleration has its price: a
cluster whose taint is tolerated, if only for a time, may be chosen for what is placed anew.
"""

from typing import Final

from msgspec import Struct

from engine.kube.schemas import Json, as_list, as_object, as_objects

NOT_READY: Final = "cluster.karmada.io/not-ready"
UNREACHABLE: Final = "cluster.karmada.io/unreachable"
_EFFECT: Final = "NoExecute"


class TolerationSeconds(Struct, frozen=True, kw_only=True):
    """The seconds that policies get for each taint; None leaves policies as they are, 0 means to leave at once."""

    not_ready: int | None = None
    unreachable: int | None = None


def with_tolerations(spec: Json, seconds: TolerationSeconds) -> Json:
    """The spec of a policy with a toleration for each taint that none of its own speaks of."""
    placement = as_object(spec.get("placement", {}))
    given = None if placement is None else as_list(placement.get("clusterTolerations", []))
    if placement is None or given is None:
        return spec
    wanted = {NOT_READY: seconds.not_ready, UNREACHABLE: seconds.unreachable}
    added: list[object] = [
        {"key": key, "operator": "Exists", "effect": _EFFECT, "tolerationSeconds": count}
        for key, count in wanted.items()
        if count is not None and not any(_speaks_of(each, key) for each in as_objects(given))
    ]
    return {**spec, "placement": {**placement, "clusterTolerations": [*given, *added]}} if added else spec


def _speaks_of(toleration: Json, key: str) -> bool:
    return (toleration.get("key") or key) == key and (toleration.get("effect") or _EFFECT) == _EFFECT
