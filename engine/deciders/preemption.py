"""Preemption, requester side: ask all shards for lower-priority bindings, choose victims and request their eviction.

The binding's shard sends one request to each shard, waits for all answers and chooses the fewest victims of
the lowest priority, or none if all of them would not free enough. The victims' shards evict them
(``preemption_victims``). Members report the freed capacity later; the binding is then scheduled like any other that
waits for capacity. If that pass fails, the binding sends another request, after a pause that doubles each time.
"""

from collections.abc import Generator
from typing import Final

from engine.deciders import record_sizes, scheduling
from engine.deciders.state import Binding, CapacityRequest
from engine.deciders.step_outputs import Outputs, View
from engine.objects import priorities
from engine.placement import missing_capacity, requests
from events import links, preemption_decisions, shapes, times, topics

CLUSTERS_MAX: Final = 1_024
"""Maximum number of clusters in one request: the first in name order."""

VICTIMS_MAX: Final = 256
"""Maximum number of victims for one binding; a binding that needs more waits."""

NOT_ENOUGH: Final = "NotEnough"
TOO_MANY: Final = "TooMany"
CAPACITY_APPEARED: Final = "RoomCame"

_PAUSE_MS: Final = times.MINUTE_MS
_PAUSE_MS_MAX: Final = 600_000
_DOUBLINGS_MAX: Final = 4


def decide(binding: Binding, view: View) -> Outputs[None]:
    """Request capacity or choose victims if the binding is blocked and may preempt; yields while it searches."""
    rank = binding.rank
    if rank is None or not binding.blocked or rank.preemption_policy != priorities.PREEMPTS:
        return
    request = view.shard.capacity_requests.get(binding.key)
    is_answered = request is not None and not request.is_decided and len(request.offers) == topics.SHARDS
    if not is_answered and request is not None and view.time_ms < request.again_ms:
        return
    if binding.declared is None or binding.claim is None:
        return
    scheduled = scheduling.request_of(
        binding, binding.declared, binding.claim, view.facts, view.placements, view.shard
    )
    shortage = missing_capacity.Shortage(scheduled, view.facts.fleet)
    if is_answered and request is not None:
        yield from _choose(binding, request, shortage, view)
    elif shortage.exists:
        yield from _request_capacity(binding, request, shortage, view)


def victims(
    shortage: missing_capacity.Shortage, priority: int, occupants: list[shapes.Occupant]
) -> Generator[None, None, tuple[shapes.Occupant, ...]]:
    """Return the fewest victims of the lowest priority that free enough; none if all together free too little.

    Yields between attempts: hundreds of occupants in a large fleet take most of a second.

    The search starts with all occupants as victims, then keeps each one whose eviction is not needed: highest
    priority first, among equals the one that frees least. So a small occupant of the lowest priority stays if a
    larger one suffices.
    """
    lower = {
        (occupant.key, occupant.cluster): occupant for occupant in occupants if occupant.priority < priority
    }
    leaving = {identity: _victim(occupant) for identity, occupant in lower.items()}
    if not shortage.is_resolved_without(leaving.values()):
        return ()
    gained = {identity: shortage.replicas_gained(occupant) for identity, occupant in leaving.items()}
    # In reverse key order: of equal occupants, those tried first are kept, so the ones with the first keys are evicted.
    last_first = sorted(leaving, reverse=True)
    for identity in sorted(last_first, key=lambda identity: (-lower[identity].priority, gained[identity])):
        spared = leaving.pop(identity)
        if not shortage.is_resolved_without(leaving.values()):
            leaving[identity] = spared
        yield
    return tuple(
        lower[identity]
        for identity in sorted(leaving, key=lambda identity: (lower[identity].priority, identity))
    )


def _victim(occupant: shapes.Occupant) -> missing_capacity.Victim:
    return missing_capacity.Victim(
        cluster=occupant.cluster,
        replicas=occupant.replicas,
        requests=requests.parse_requests(occupant.requests),
    )


def _request_capacity(
    binding: Binding,
    request: CapacityRequest | None,
    shortage: missing_capacity.Shortage,
    view: View,
) -> Outputs[None]:
    clusters = shortage.clusters[:CLUSTERS_MAX]
    if not clusters:
        return
    attempt = request.attempt + 1 if request else 1
    yield preemption_decisions.CapacityWanted(
        key=binding.key,
        number=view.step,
        priority=binding.priority,
        missing=shortage.missing,
        clusters=clusters,
        again_ms=view.time_ms + _pause_ms(attempt),
        attempt=attempt,
    )
    # Shards without candidates get a request too: victims are chosen once every shard has answered.
    for shard in range(topics.SHARDS):
        yield links.CapacityRequested(
            shard=shard, key=binding.key, number=view.step, priority=binding.priority, clusters=clusters
        )


def _choose(
    binding: Binding, request: CapacityRequest, shortage: missing_capacity.Shortage, view: View
) -> Outputs[None]:
    chosen: tuple[shapes.Occupant, ...] = ()
    reason = CAPACITY_APPEARED
    if shortage.exists:
        offered = [occupant for shard in sorted(request.offers) for occupant in request.offers[shard]]
        chosen = yield from victims(shortage, binding.priority, offered)
        reason = "" if chosen else NOT_ENOUGH
        if len(chosen) > VICTIMS_MAX or not record_sizes.fits(chosen):
            chosen, reason = (), TOO_MANY
    again_ms = view.time_ms + _pause_ms(request.attempt)
    yield preemption_decisions.PreemptionDecided(
        key=binding.key, number=request.number, again_ms=again_ms, victims=chosen, reason=reason
    )
    for victim in chosen:
        yield links.PreemptionRequested(
            key=victim.key,
            cluster=victim.cluster,
            replicas=victim.replicas,
            by=binding.key,
            priority=binding.priority,
            until_ms=again_ms,
        )


def _pause_ms(attempt: int) -> int:
    return min(_PAUSE_MS << min(attempt - 1, _DOUBLINGS_MAX), _PAUSE_MS_MAX)
