"""ResourceQuotas: what they limit, and what a pod uses of it."""

from typing import Final

import msgspec
from msgspec import Struct

from engine.kubeapi.values import quantity
from engine.works.amounts import Amounts
from events.json_values import part

KIND: Final = "ResourceQuota"
PODS: Final = ("pods", "count/pods")
_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")


class Quota(Struct, frozen=True):
    """The hard limits of a quota: amounts as written, and in billionths."""

    texts: dict[str, str]
    hard: dict[str, int]


def read(manifest: bytes | msgspec.Raw) -> Quota | None:
    """Return the quota in a manifest; None if it can't be read or counts only some pods (``scopes``)."""
    try:
        spec = part(msgspec.json.decode(manifest), "spec")
    except (msgspec.MsgspecError, RecursionError):
        return None
    if spec.get("scopes") or spec.get("scopeSelector"):
        return None
    amounts = {name: quantity.nano_units_of(text) for name, text in part(spec, "hard").items()}
    hard = {name: nano for name, nano in amounts.items() if nano is not None}
    return Quota({name: str(text) for name, text in part(spec, "hard").items()}, hard)


def use_of_pod(resource: str, requests: Amounts, limits: Amounts) -> int | None:
    """Return what a pod uses of a limited resource, in billionths; None for a resource that pods do not use."""
    if resource in PODS:
        return quantity.NANO
    if resource.startswith(_LIMITS):
        return dict(limits).get(resource.removeprefix(_LIMITS), 0)
    name = resource.removeprefix(_REQUESTS)
    return dict(requests).get(name, 0) if name in _COMPUTE or ("/" in name and name != resource) else None
