"""Resources that one replica takes, as exact integers in billionths of each resource's unit."""

from collections.abc import Iterable
from typing import Final

from engine.kubeapi.values import quantity

Amounts = tuple[tuple[str, int], ...]
"""Resources of one replica in billionths; one of them is ``pods``, with the amount of one pod."""

ONE_POD: Final[Amounts] = ((quantity.PODS, quantity.NANO),)


def amounts_of(requests: Iterable[tuple[str, str]]) -> Amounts:
    """Return the resources of a replica with these requests; raises quantity.QuantityError for malformed quantities."""
    amounts = (
        (resource, quantity.nano_units(text)) for resource, text in requests if resource != quantity.PODS
    )
    return tuple((resource, amount) for resource, amount in amounts if amount > 0) + ONE_POD
