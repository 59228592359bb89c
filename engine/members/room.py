"""How much room a member has, and what takes it up: exact sums in billionths of each resource's unit.

Room is counted over the whole cluster, as its resource summary is; how replicas lie on single nodes is not
simulated. A replica takes room from its admission on. What waits for room takes none, and can exceed it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from engine.members import specs
from engine.objects import quantity

PODS: Final = "pods"
_NANO_A_MILLI: Final = 10**6

Amounts = tuple[tuple[str, int], ...]
"""What one replica takes: resource and billionths; one pod is among them."""

ONE_POD: Final[Amounts] = ((PODS, quantity.NANO),)


class Room(Struct):
    """Sums by resource: what there is, and what is running, starting, and pending (waiting for room)."""

    allocatable: dict[str, int]
    running: dict[str, int] = {}
    starting: dict[str, int] = {}
    pending: dict[str, int] = {}


def room_of(nodes: Iterable[specs.NodeGroup]) -> Room:
    """The empty room of a cluster with these nodes; raises quantity.QuantityError for what is no quantity."""
    total: dict[str, int] = {}
    for group in nodes:
        for resource, text in group.allocatable.items():
            total[resource] = total.get(resource, 0) + quantity.nano_units(text) * group.count
    return Room(total)


def amounts_of(requests: Iterable[tuple[str, str]]) -> Amounts:
    """What a replica with these requests takes; raises quantity.QuantityError for what is no quantity."""
    asked = ((resource, quantity.nano_units(text)) for resource, text in requests if resource != PODS)
    return tuple((resource, amount) for resource, amount in asked if amount > 0) + ONE_POD


def add(sums: dict[str, int], amounts: Amounts, count: int) -> None:
    """Adds ``count`` replicas to sums; a negative count takes them out."""
    for resource, amount in amounts:
        sums[resource] = sums.get(resource, 0) + amount * count


def fitting(room: Room, amounts: Amounts, wanted: int) -> int:
    """How many of ``wanted`` replicas there is room for now."""
    for resource, amount in amounts:
        taken = room.running.get(resource, 0) + room.starting.get(resource, 0)
        wanted = min(wanted, max(room.allocatable.get(resource, 0) - taken, 0) // amount)
    return wanted


def texts(room: Room, *sums: Mapping[str, int]) -> dict[str, str]:
    """The total of some sums as Kubernetes quantities; all that the cluster has, and all that is not zero."""
    names = {*room.allocatable, *(resource for each in sums for resource, amount in each.items() if amount)}
    return {name: text(sum(each.get(name, 0) for each in sums)) for name in sorted(names)}


def text(nano: int) -> str:
    """The shortest exact quantity of so many billionths."""
    if nano % quantity.NANO == 0:
        return str(nano // quantity.NANO)
    return f"{nano // _NANO_A_MILLI}m" if nano % _NANO_A_MILLI == 0 else f"{nano}n"
