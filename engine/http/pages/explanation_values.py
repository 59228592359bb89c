"""Values for explanations on the pages. No HTTP here."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from engine.http import summaries
from engine.placement.explanations import GroupExplanation
from engine.reconcilers.explained import Explained


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a binding was placed as it is: facts about the decision, and the affinity groups that were tried.

    Each group has a title, and whether its result was applied.
    """

    facts: list[tuple[str, str]]
    groups: list[tuple[GroupExplanation, str, bool]]


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
    groups: list[tuple[GroupExplanation, str, bool]] = []
    for group in explained.explanation.groups if explained.explanation else ():
        refusal = summaries.refusal(explained, group)
        groups.append((group, summaries.group_title(group, refusal), not refusal))
    return Explanation(facts=[fact for fact in facts if fact[1]], groups=groups)


def _counts(clusters: Mapping[str, int]) -> str:
    return summaries.spread(clusters, ": ")


def _by_name(lists: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{name}: {', '.join(names)}" for name, names in lists.items())
