"""The scheduler's input: one binding with its placement and its previous assignment.

Values only; no decisions.
"""

import functools
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from engine.kubeapi.values import quantity
from engine.objects import placements

_PARSED_MAX: Final = 4_096

AMOUNT_MAX: Final = 2**62
"""Upper bound of a requested amount: more than `capacity.UNITS_MAX`, so it fits nowhere, and within int64."""

Requests: TypeAlias = tuple[tuple[str, int], ...]
"""Requests of one replica as (resource, amount): cpu in millicores, others in whole units, rounded up."""


class Resource(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """The template to place."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler's view of one binding.

    ``requests`` is None if the template has no replica requirements, which differs from empty ones. ``components`` is
    the number of pod templates of a multi-component template. ``current`` is the previous assignment, in recorded
    order; ``evicting`` are the clusters with a graceful eviction in progress. With ``fresh`` the decision is made as if
    the workload had never been scheduled. ``trigger`` is the reason of the scheduling pass; with "None" the assignment
    stays. ``replica_limits`` are the further replicas that ResourceQuotas allow, by cluster. ``excluded_by_groups`` are
    clusters that the workload's groups exclude, ``allowed_by_groups`` the only ones that they allow (None: any);
    clusters of the previous assignment stay candidates. ``prioritized``: the binding has a priority; if its spread
    constraints find too little capacity, the reason of the failure is Unschedulable, as in releases of Karmada with
    preemption.
    """

    resource: Resource
    placement: placements.Placement
    replicas: int = 0
    requests: Requests | None = None
    components: int = 0
    current: tuple[tuple[str, int], ...] = ()
    evicting: frozenset[str] = frozenset()
    observed_affinity: str = ""
    fresh: bool = False
    empty_workload_propagation: bool = False
    trigger: str = "PlacementChanged"
    replica_limits: tuple[tuple[str, int], ...] = ()
    excluded_by_groups: frozenset[str] = frozenset()
    allowed_by_groups: frozenset[str] | None = None
    prioritized: bool = False

    @property
    def is_workload(self) -> bool:
        """Whether the template has replicas or resource requirements."""
        return self.replicas > 0 or self.requests is not None


@functools.lru_cache(maxsize=_PARSED_MAX)
def parse_pairs(quantities: tuple[tuple[str, str], ...]) -> Requests:
    """Parse (resource, quantity) pairs as ``parse_requests`` does; the result is cached."""
    return parse_requests(dict(quantities))


def parse_requests(quantities: Mapping[str, quantity.Quantity]) -> Requests:
    """Return the requests of one replica, in name order; amounts that are zero or negative are left out.

    Raises `quantity.QuantityError` if a quantity is malformed.
    """
    nano = sorted((name, quantity.nano_units(amount)) for name, amount in quantities.items())
    return tuple(
        (name, min(quantity.counted_units(name, amount), AMOUNT_MAX)) for name, amount in nano if amount > 0
    )
