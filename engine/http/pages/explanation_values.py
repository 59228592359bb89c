"""Values for explanations on the pages. No HTTP here."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from engine.http import summaries
from engine.placement.explanations import ClusterExplanation, GroupExplanation
from engine.reconcilers.explained import Explained


class Seat(Struct, frozen=True, kw_only=True):
    """A cluster in an explanation; ``failed`` has the reasons that excluded it, empty for a candidate.

    ``kept`` are the replicas that it had before; ``capacity`` is its free capacity.
    """

    cluster: str
    chosen: bool
    replicas: str
    weight: str
    kept: str
    capacity: str
    score: str
    failed: list[str]


class Group(Struct, frozen=True, kw_only=True):
    """One affinity group that the scheduler tried."""

    title: str
    error: str
    seats: list[Seat]


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a binding was placed as it is: facts about the decision, and the affinity groups that were tried."""

    facts: list[tuple[str, str]]
    groups: list[Group]


def explanation(explained: Explained) -> Explanation:
    """Convert the explanation of a binding's placement for display."""
    basis, mode = explained.basis, explained.mode
    facts = [
        ("Result", summaries.result(explained, _counts(explained.clusters))),
        ("Before", _counts(explained.previous)),
        ("Trigger", f"{explained.trigger}{f' ({mode})' if mode else ''}"),
        ("Overrides", _by_name(explained.overrides)),
        ("Required by", _by_name(explained.required_by)),
        ("Message", explained.message),
        *summaries.further_lines(explained),
        ("Decided", summaries.decided(explained)),
        ("Basis", f"step {basis.step} of shard {basis.shard}, rules {basis.release}"),
    ]
    tried = explained.explanation.groups if explained.explanation else ()
    groups = [_group(explained, group) for group in tried]
    return Explanation(facts=[fact for fact in facts if fact[1]], groups=groups)


def _group(explained: Explained, group: GroupExplanation) -> Group:
    refusal = summaries.refusal(explained, group)
    return Group(
        title=summaries.group_title(group, refusal),
        error=group.error,
        seats=[_seat(cluster, is_applied=not refusal) for cluster in group.clusters],
    )


def _seat(cluster: ClusterExplanation, *, is_applied: bool) -> Seat:
    is_chosen = bool(cluster.replicas) or (cluster.selected and cluster.replicas is None)
    return Seat(
        cluster=cluster.name,
        chosen=is_chosen and is_applied,
        replicas=_number(cluster.replicas),
        weight=_number(cluster.weight),
        kept=_number(cluster.kept),
        capacity=summaries.free_replicas(cluster),
        score=_number(cluster.score),
        failed=summaries.failures(cluster),
    )


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _counts(clusters: Mapping[str, int]) -> str:
    return summaries.spread(clusters, ": ")


def _by_name(lists: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{name}: {', '.join(names)}" for name, names in lists.items())
