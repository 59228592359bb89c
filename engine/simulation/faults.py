"""Add faults to a member and remove them. Their effects are deterministic."""

from http import HTTPStatus
from typing import Final, Literal

from engine.simulation.listed_statuses import MemberStatus
from engine.simulation.state import Faults, MemberState
from events import clusters

Kind = Literal["down", "slow", "losing", "lagging", "throttled", "failing"]

SLOWNESS: Final = 10
"""Default factor on the start-up time of replicas in a slow member."""

LOSE_EVERY: Final = 2
"""A losing member loses every n-th report; this is the default n."""

LAG_MS: Final = 1_000
"""Default time that each request to the API of a lagging member takes."""

REFUSE_EVERY: Final = 2
"""A throttled or failing member refuses every n-th request to its API; this is the default n."""

AMOUNT_MAX: Final = 1_000_000


def inflict(state: MemberState, kind: Kind, amount: int | None) -> None:
    """Apply a fault to a member.

    ``amount`` is the factor on start-up times for "slow", n for "losing" every n-th report, milliseconds for each
    request to a "lagging" API, and n for refusing every n-th request to a "throttled" (429) or "failing" (503) one;
    "down" ignores it. Raises ValueError for an amount below 1 or above 1,000,000.
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
        case "lagging":
            faults.lag_ms = LAG_MS if amount is None else amount
        case "throttled":
            faults.throttle_every = REFUSE_EVERY if amount is None else amount
        case "failing":
            faults.fail_every = REFUSE_EVERY if amount is None else amount


def heal(state: MemberState) -> None:
    """Remove all faults; lost reports are sent again in the next turn."""
    state.faults = Faults(unreachable=state.faults.unreachable)
    state.dirty.update(state.lost)
    state.lost.clear()
    state.retry_ms = None
    state.capacity_changed = True


def refusal(faults: Faults, number: int) -> int:
    """Return the HTTP status with which the API refuses its ``number``-th request; 0 if it answers."""
    if faults.throttle_every and number % faults.throttle_every == 0:
        return HTTPStatus.TOO_MANY_REQUESTS
    if faults.fail_every and number % faults.fail_every == 0:
        return HTTPStatus.SERVICE_UNAVAILABLE
    return 0


def is_reachable(joined: clusters.ClusterJoined) -> bool:
    """Whether a Cluster's ``apiEndpoint`` is empty or the address of the simulated member's API."""
    return not joined.api_endpoint or joined.api_endpoint.endswith(f"/clusters/{joined.name}/proxy")


def status_of(state: MemberState) -> MemberStatus:
    return MemberStatus(
        name=state.spec.name,
        joined=state.joined,
        down=state.faults.down,
        slowness=state.faults.slowness,
        lose_every=state.faults.lose_every,
        lag_ms=state.faults.lag_ms,
        throttle_every=state.faults.throttle_every,
        fail_every=state.faults.fail_every,
        startup_ms=state.spec.startup_ms,
        workloads=len(state.workloads),
    )
