"""Groups of workloads (``workloadAffinity``): bindings that share all clusters, or none.

Workloads of a namespace form a group if their policies name one label and they have the same value for it. One shard
owns the group. A binding that is to be placed in a new cluster waits until that shard grants its clusters. If other
bindings of the group forbid this, the binding is scheduled again without the clusters that they exclude. As in Karmada,
a cluster that a binding has already is never excluded.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from engine.deciders import record_sizes
from engine.deciders.ledgers import GroupMember, WorkloadGroup
from engine.deciders.placement_cache import Placements
from engine.deciders.state import Binding, ShardState
from engine.deciders.step_outputs import Outputs, View
from engine.domain.workload_groups import NO_RESTRICTIONS, GroupClusters, GroupRestrictions
from events import group_decisions, keys, links

_VERDICTS_MAX: Final = 200
"""Maximum number of verdicts in one record; fewer if they name many clusters."""


class Group(NamedTuple):
    """A group that a binding belongs to; ``is_apart``: its bindings share no clusters, otherwise they share all."""

    key: str
    is_apart: bool


def groups_of(binding: Binding, placements: Placements) -> list[Group]:
    """Return the groups of a binding, by its last policy and the labels of its template."""
    claim, template = binding.last_claim, binding.template
    affinity = (
        None if claim is None or template is None else placements.get(claim.placement).workload_affinity
    )
    if affinity is None or template is None:
        return []
    namespace = template.ref.namespace
    return [
        Group(keys.group_key(namespace, label, value, apart=is_apart), is_apart)
        for label, value, is_apart in affinity.groups(namespace, template.labels)
    ]


def restrictions(binding: Binding, placements: Placements, shard: ShardState) -> GroupRestrictions:
    """Return the clusters that the binding's groups exclude and allow, by the last verdicts of the groups' owners."""
    seats = shard.seats.get(binding.key)
    if not seats:
        return NO_RESTRICTIONS
    restricted = NO_RESTRICTIONS
    for group in groups_of(binding, placements):
        seat = seats.get(group.key)
        if seat is None or not seat.is_bound:
            continue
        restricted = restricted.with_group(seat.others, is_apart=group.is_apart)
    return restricted


def has_open_claim(binding: Binding, shard: ShardState) -> bool:
    """Whether a claim is not granted yet; the group's owner then answers again when other bindings move."""
    seats = shard.seats.get(binding.key, {})
    return any(seat.wanted and not seat.is_granted for seat in seats.values())


def admit(binding: Binding, clusters: Iterable[str], view: View) -> Outputs[bool]:
    """Return whether the binding may have these clusters now; if not, request them from the owners of its groups."""
    requested = tuple(sorted(clusters))
    new = set(requested).difference(_clusters(binding))
    is_admitted = True
    for group in groups_of(binding, view.placements) if new else ():
        seat = view.shard.seats.get(binding.key, {}).get(group.key)
        if seat is not None and new <= seat.reserved:
            continue
        is_admitted = False
        if seat is None or seat.wanted != requested:
            yield from _claim(binding, group, seat, requested, view)
    return is_admitted


def settle(binding: Binding, view: View) -> Outputs[None]:
    """Report the changed clusters of a binding to the owners of its groups, also of groups that it has left."""
    seats = dict(view.shard.seats.get(binding.key, {}))
    clusters = _clusters(binding)
    for group in groups_of(binding, view.placements) if binding.declared is not None else ():
        seat = seats.pop(group.key, None)
        if set(clusters) == (seat.reserved if seat else set()):
            continue
        requested = seat.wanted if seat and (not seat.is_granted or view.shard.awaits(binding.key)) else ()
        if seat is None or (clusters, requested) != (seat.placed, seat.wanted):
            yield from _claim(binding, group, seat, requested, view)
    for key, seat in seats.items():
        yield from _report(binding.key, Group(key, is_apart=False), seat, (), (), view)


def share(key: str, group: WorkloadGroup) -> Outputs[None]:
    """Grant or refuse the open claims of a group, and send the new verdicts; yields after each claim and record."""
    clusters = GroupClusters((seat.reserved for seat in group.seats.values()), is_apart=group.apart)
    # Collect all verdicts before emitting the first: applying a verdict removes its claim from ``group.open``.
    verdicts: list[group_decisions.GroupVerdict] = []
    for by in group.open:
        yield
        seat = group.seats[by]
        own = seat.reserved
        is_bound, others = clusters.restricts(own), clusters.restricting_clusters(own)
        new = set(seat.wanted) - own
        is_granted = new.isdisjoint(others) if group.apart else not is_bound or new <= set(others)
        if is_granted:
            clusters.replace(own, own | new)
        elif seat.is_answered and (seat.is_bound, seat.others) == (is_bound, others):
            continue
        verdict = group_decisions.GroupVerdict(
            by=by, number=seat.number, granted=is_granted, bound=is_bound, others=others
        )
        verdicts.append(verdict)
    for start in range(0, len(verdicts), _VERDICTS_MAX):
        for portion in record_sizes.portions(tuple(verdicts[start : start + _VERDICTS_MAX])):
            yield group_decisions.GroupDecided(group=key, verdicts=portion)
            yield
    for verdict in verdicts:
        yield links.GroupAnswered(
            key=verdict.by,
            group=key,
            number=verdict.number,
            granted=verdict.granted,
            bound=verdict.bound,
            others=verdict.others,
        )
        yield


def _clusters(binding: Binding) -> tuple[str, ...]:
    return tuple(sorted({name for name, _ in binding.clusters}))


def _claim(
    binding: Binding, group: Group, seat: GroupMember | None, requested: tuple[str, ...], view: View
) -> Outputs[None]:
    yield from _report(binding.key, group, seat, _clusters(binding), requested, view)


def _report(
    key: str,
    group: Group,
    seat: GroupMember | None,
    placed: tuple[str, ...],
    requested: tuple[str, ...],
    view: View,
) -> Outputs[None]:
    number = view.next_number(seat.number if seat else None)
    yield group_decisions.GroupClaimed(
        key=key, group=group.key, number=number, placed=placed, wanted=requested
    )
    yield links.GroupRequested(
        group=group.key, key=key, number=number, apart=group.is_apart, placed=placed, wanted=requested
    )
