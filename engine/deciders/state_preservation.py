"""State preservation: labels with status values from the last report of the cluster that a workload leaves.

Rules and names are Karmada's. The policy names status values and a label for each; the eviction records the labels.
Until the newest eviction ends, a work carries its labels under three conditions: the work's cluster is the
workload's only one, the workload was not in that cluster before, and the purge mode is ``Directly``. Unlike in
Karmada, a value that is missing or is no valid label value is left out and recorded with the reason; the eviction
does not wait for such a value.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from engine.deciders.state import Binding
from engine.domain.bindings import Claim
from events import decisions, shapes, vocabulary
from events.validation import names

_NOTHING: Final[dict[str, str]] = {}
_PLAIN: Final = shapes.Reading()
_SHOWN_CHARS_MAX: Final = 64


def with_state(
    started: decisions.EvictionStarted, binding: Binding, rules: Sequence[shapes.StateRule]
) -> decisions.EvictionStarted:
    """Return an eviction that is about to be decided, with the binding's replicas and state in the cluster.

    The binding must still be in the cluster.
    """
    labels: dict[str, str] = {}
    missing: dict[str, str] = {}
    report = binding.reports.get(started.cluster) if rules else None
    for rule in rules:
        value = report.values.get(rule.path) if report else None
        if value is None:
            missing[rule.alias] = f"nothing was reported at {rule.path}"
        elif not value or not names.is_label_value(value):
            missing[rule.alias] = f"{value[:_SHOWN_CHARS_MAX]!r} is no value for a label"
        else:
            labels[rule.alias] = value
    return structs.replace(
        started,
        replicas=dict(binding.clusters)[started.cluster],
        labels=labels,
        clusters_before=tuple(name for name, _ in binding.clusters) if rules else (),
        not_preserved=missing,
    )


def reading(claim: Claim | None, kind_reading: shapes.Reading | None) -> shapes.Reading | None:
    """Return how members read the status: the kind's reading extended by the values of the policy's rules."""
    if claim is None:
        return kind_reading
    application = claim.failover.preserved if claim.failover else ()
    if not application and not claim.preserved:
        return kind_reading
    base = kind_reading or _PLAIN
    paths = {rule.path for rule in (*application, *claim.preserved)}
    return structs.replace(base, values=tuple(sorted(paths.union(base.values))))


def labels(binding: Binding, cluster: str) -> dict[str, str]:
    """Return the labels with preserved state for a work in a cluster; empty if the newest eviction has none for it."""
    if not binding.tasks or len(binding.clusters) != 1:
        return _NOTHING
    newest = binding.tasks[-1]
    is_assigned = binding.clusters[0][0] == cluster
    if not is_assigned or newest.purge_mode != vocabulary.PURGE_DIRECTLY or cluster in newest.clusters_before:
        return _NOTHING
    return newest.labels
