"""What a decision is asked for: one binding, its placement, and where it runs now.

Values only; nothing here decides.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

from engine.objects import placements, quantity

AMOUNT_MAX: Final = 2**62
"""More than this is asked for as this: no cluster is counted to have as much, and an int64 column divides by it."""

Requests: TypeAlias = tuple[tuple[str, int], ...]
"""What one replica asks for: (resource, amount), cpu in thousandths, all others in whole units, rounded up."""


class Resource(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", omit_defaults=True):
    """The template that is to be placed."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One binding as a decision sees it.

    ``requests`` is None where the template has no replica requirements (that differs from empty ones).
    ``components`` is the number of pod templates of a template with several. ``current`` is the previous result
    in its own order, ``evicting`` the clusters that a graceful eviction empties. ``fresh`` decides as if the workload
    had never been scheduled. ``trigger`` says why the pass runs; "None" means that nothing is to change.
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

    @property
    def is_workload(self) -> bool:
        """Whether there are replicas to speak of."""
        return self.replicas > 0 or self.requests is not None


def parse_requests(quantities: Mapping[str, quantity.Quantity]) -> Requests:
    """What one replica asks for, in name order; amounts that round up to nothing are left out.

    Raises `quantity.QuantityError` where a quantity is malformed.
    """
    nano = sorted((name, quantity.nano_units(amount)) for name, amount in quantities.items())
    return tuple(
        (name, min(quantity.counted_units(name, amount), AMOUNT_MAX)) for name, amount in nano if amount > 0
    )
