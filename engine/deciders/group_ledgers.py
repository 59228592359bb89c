"""Fold claims and verdicts of workload groups into seats (``ledgers.GroupMember``).

The shard of a binding keeps the binding's own seats, the owner shard of a group keeps all seats of the group.
"""

from engine.deciders.ledgers import GroupMember, WorkloadGroup
from engine.deciders.state import ShardState
from events import group_decisions, links


def take(shard: ShardState, link: links.GroupRequested) -> bool:
    """Fold a claim into its group; return False if it is not newer than the binding's last claim."""
    group = shard.groups.setdefault(link.group, WorkloadGroup(link.apart))
    previous = group.seats.get(link.key)
    if previous is not None and link.number <= previous.number:
        return False
    if link.placed or link.wanted:
        group.seats[link.key] = GroupMember(link.number, link.placed, link.wanted)
    else:
        group.seats.pop(link.key, None)
    if link.wanted:
        # Claims are decided in the order of the dict. A claim that is open already keeps its position.
        group.open[link.key] = True
    else:
        group.open.pop(link.key, None)
    return True


def answer(shard: ShardState, link: links.GroupAnswered) -> bool:
    """Fold a verdict into a binding's seat; return False if it answers an older claim, or one granted already."""
    seat = shard.seats.get(link.key, {}).get(link.group)
    if seat is None or seat.number != link.number or seat.is_granted:
        return False
    _judge(seat, link)
    if link.granted:
        # The next scheduling pass must choose the granted clusters, so restore the other bindings' clusters from the
        # time of the claim. With newer ones the pass could choose different clusters, and two bindings could claim in
        # turn forever.
        seat.is_bound, seat.others = seat.asked_bound, seat.asked_others
    return True


def apply(shard: ShardState, data: group_decisions.GroupClaimed | group_decisions.GroupDecided) -> None:
    """Apply a claim of one of the shard's bindings, or verdicts on claims in a group that the shard owns."""
    match data:
        case group_decisions.GroupClaimed():
            seats = shard.seats.setdefault(data.key, {})
            previous = seats.pop(data.group, None)
            if data.placed or data.wanted:
                seat = seats[data.group] = GroupMember(data.number, data.placed, data.wanted)
                if previous is not None:
                    seat.is_bound, seat.others = previous.is_bound, previous.others
                    is_same = previous.wanted == data.wanted
                    seat.asked_bound = previous.asked_bound if is_same else previous.is_bound
                    seat.asked_others = previous.asked_others if is_same else previous.others
            if not seats:
                del shard.seats[data.key]
        case group_decisions.GroupDecided():
            group = shard.groups[data.group]
            for verdict in data.verdicts:
                _judge(group.seats[verdict.by], verdict)
                if verdict.granted:
                    del group.open[verdict.by]


def settle(shard: ShardState, key: str) -> None:
    """Forget the group ``key`` if it has no bindings left."""
    group = shard.groups.get(key)
    if group is not None and not group.seats:
        del shard.groups[key]


def _judge(seat: GroupMember, verdict: links.GroupAnswered | group_decisions.GroupVerdict) -> None:
    seat.is_answered, seat.is_granted = True, verdict.granted
    seat.is_bound, seat.others = verdict.bound, verdict.others
