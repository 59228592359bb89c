"""State that outlives a move: values of a workload's status, as the cluster that it leaves reported them last.

The rule and its words are the reference's: the policy names values and the labels that they become; the newest eviction
keeps them; what is dispatched bears them for as long as that eviction goes on, where it is the workload's only cluster,
was none of its clusters before, and what ran before was removed directly. A value that is not there, or that can be no
label, is left out and told: unlike in the reference, it holds no eviction up.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from engine.deciders.state import Binding, Claim
from events import forms_names, shapes

_DIRECTLY: Final = "Directly"
_NOTHING: Final[dict[str, str]] = {}
_PLAIN: Final = shapes.Reading()
_SHOWN_CHARS_MAX: Final = 64


class Preserved:
    """What is kept of a binding in a cluster that it leaves: ``labels``, and by label why there is none."""

    def __init__(self, binding: Binding, cluster: str, rules: Sequence[shapes.StateRule]) -> None:
        self.labels: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        report = binding.reports.get(cluster) if rules else None
        for rule in rules:
            value = report.values.get(rule.path) if report else None
            if value is None:
                self.missing[rule.alias] = f"nothing was reported at {rule.path}"
            elif not value or not forms_names.is_label_value(value):
                self.missing[rule.alias] = f"{value[:_SHOWN_CHARS_MAX]!r} is no value for a label"
            else:
                self.labels[rule.alias] = value


def reading(claim: Claim | None, of_kind: shapes.Reading | None) -> shapes.Reading | None:
    """How members read the status: as the kind's interpreter says, and so that the policy's rules find their values."""
    if claim is None:
        return of_kind
    application = claim.failover.preserved if claim.failover else ()
    if not application and not claim.preserved:
        return of_kind
    known = of_kind or _PLAIN
    paths = {rule.path for rule in (*application, *claim.preserved)}
    return structs.replace(known, values=tuple(sorted(paths.union(known.values))))


def labels(binding: Binding, cluster: str) -> dict[str, str]:
    """What a work for a cluster bears of the state that the newest eviction preserved."""
    if not binding.tasks or len(binding.clusters) != 1:
        return _NOTHING
    newest = binding.tasks[-1]
    is_its_own = binding.clusters[0][0] == cluster
    if not is_its_own or newest.purge_mode != _DIRECTLY or cluster in newest.clusters_before:
        return _NOTHING
    return newest.labels


def before(binding: Binding, rules: Sequence[shapes.StateRule]) -> tuple[str, ...]:
    """The clusters that a binding has, where it matters which it had."""
    return tuple(name for name, _ in binding.clusters) if rules else ()
