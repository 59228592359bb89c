"""Faults on demand: what can be wrong with a member, and taking it off again. Each is deterministic."""

from typing import Final, Literal

from msgspec import Struct

from engine.members.state import MemberState

Kind = Literal["down", "slow", "losing"]

SLOWNESS: Final = 10
"""How many times longer replicas of a slow member take to start, where no amount is named."""

LOSE_EVERY: Final = 2
"""Which report of a losing member is lost, where no amount is named: every second one."""

AMOUNT_MAX: Final = 1_000_000


class MemberStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """A member as people look at it; the fault fields mean what ``state.Faults`` says."""

    name: str
    joined: bool
    down: bool
    slowness: int
    lose_every: int
    startup_ms: int
    workloads: int


def inflict(state: MemberState, kind: Kind, amount: int | None) -> None:
    """Puts a fault on a member.

    ``amount`` is the factor of start-up times for "slow", n for "losing" each n-th report, and nothing for
    "down". Raises ValueError for an amount below 1 or above 1,000,000.
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
    """Takes all faults off; what was lost is said again in the next turn."""
    faults = state.faults
    faults.down, faults.slowness, faults.lose_every = False, 1, 0
    state.dirty.update(state.lost)
    state.lost.clear()
    state.retry_ms = None
    state.room_changed = True


def status_of(state: MemberState) -> MemberStatus:
    """How a member stands."""
    return MemberStatus(
        name=state.spec.name,
        joined=state.joined,
        down=state.faults.down,
        slowness=state.faults.slowness,
        lose_every=state.faults.lose_every,
        startup_ms=state.spec.startup_ms,
        workloads=len(state.workloads),
    )
