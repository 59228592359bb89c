"""Add faults to a member and remove them. Their effects are deterministic."""

from http import HTTPStatus
from typing import Annotated, Final

from msgspec import Meta

from engine.simulation.listed_statuses import FaultKind, MemberStatus
from engine.simulation.state import Faults, MemberState
from events import clusters

_FIELDS: Final[dict[FaultKind, tuple[str, int]]] = {
    "down": ("down", True),
    "slow": ("slowness", 10),
    "losing": ("lose_every", 2),
    "lagging": ("lag_ms", 1_000),
    "throttled": ("throttle_every", 2),
    "failing": ("fail_every", 2),
}
"""Field of ``state.Faults`` and default amount of each kind of fault; ``inflict`` describes the amounts."""

AMOUNT_MAX: Final = 1_000_000
Amount = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": AMOUNT_MAX})]
"""Amount of a fault in a request; ``inflict`` refuses amounts that are out of range."""


def inflict(state: MemberState, kind: FaultKind, amount: int | None) -> None:
    """Apply a fault to a member.

    ``amount`` is the factor on start-up times for "slow", n for "losing" every n-th report, milliseconds for each
    request to a "lagging" API, and n for refusing every n-th request to a "throttled" (429) or "failing" (503) one;
    "down" ignores it. Raises ValueError for an amount below 1 or above 1,000,000.
    """
    if amount is not None and not 1 <= amount <= AMOUNT_MAX:
        raise ValueError(f"amount: {amount} is not between 1 and {AMOUNT_MAX}")
    field, default = _FIELDS[kind]
    setattr(state.faults, field, default if amount is None or kind == "down" else amount)


def heal(state: MemberState) -> None:
    """Remove all faults except ``unreachable``, which the Cluster's address decides; queue lost reports again."""
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
        startup_ms=state.spec.startup_ms,
        workloads=len(state.workloads),
        **{field: getattr(state.faults, field) for field, _ in _FIELDS.values()},
    )
