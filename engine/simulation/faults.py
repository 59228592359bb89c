"""Faults of a member on request, and their removal. All are deterministic."""

from typing import Final, Literal

from msgspec import Struct

from engine.simulation.state import MemberState
from events import clusters

Kind = Literal["down", "slow", "losing"]

SLOWNESS: Final = 10
"""Default factor on the start-up time of replicas in a slow member."""

LOSE_EVERY: Final = 2
"""A losing member loses every n-th report; this is the default n."""

AMOUNT_MAX: Final = 1_000_000


class MemberStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """Status of a member as shown to users; the fault fields are those of ``state.Faults``."""

    name: str
    joined: bool
    down: bool
    slowness: int
    lose_every: int
    startup_ms: int
    workloads: int


def inflict(state: MemberState, kind: Kind, amount: int | None) -> None:
    """Apply a fault to a member.

    ``amount`` is the factor on start-up times for "slow" and n for "losing" every n-th report; "down" ignores
    it. Raises ValueError for an amount below 1 or above 1,000,000.
    """
    if amount is not None and not 1 <= amount <= AMOUNT_MAX:
        raise ValueError(f"amount: {amount} is not between 1 and {AMOUNT_MAX}")
    faults = state.faults
    match kind:
        case "down":
            faults.down = True
        case "slow":
            faults.slowness = SLOWNESS if amount is None else amount
        case "losing":
            faults.lose_every = LOSE_EVERY if amount is None else amount


def heal(state: MemberState) -> None:
    """Remove all faults; lost reports are sent again in the next turn."""
    faults = state.faults
    faults.down, faults.slowness, faults.lose_every = False, 1, 0
    state.dirty.update(state.lost)
    state.lost.clear()
    state.retry_ms = None
    state.capacity_changed = True


def is_reachable(joined: clusters.ClusterJoined) -> bool:
    """Whether a Cluster object has no address, or that of the simulated member's API."""
    return not joined.api_endpoint or joined.api_endpoint.endswith(f"/clusters/{joined.name}/proxy")


def status_of(state: MemberState) -> MemberStatus:
    return MemberStatus(
        name=state.spec.name,
        joined=state.joined,
        down=state.faults.down,
        slowness=state.faults.slowness,
        lose_every=state.faults.lose_every,
        startup_ms=state.spec.startup_ms,
        workloads=len(state.workloads),
    )
