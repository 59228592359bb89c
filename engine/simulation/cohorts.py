"""Cohorts of a workload: its admitted replicas, grouped by age, oldest first; equal tuples are shared."""

from itertools import accumulate
from typing import Final

from msgspec import structs

from engine.shared_values import shared
from engine.simulation.state import Cohort

Cohorts = tuple[Cohort, ...]

_MERGED_MAX: Final = 64
"""Maximum number of cohorts per workload.

Beyond it the oldest ones are merged, which loses their exact ages but not their replicas.
"""


def index_at(cohorts: Cohorts, position: int) -> int:
    """Return the index of the cohort that contains the replica at a position."""
    for index, cohort in enumerate(cohorts):
        if position < cohort.count:
            return index
        position -= cohort.count
    raise IndexError(position)


def without(cohorts: Cohorts, index: int, count: int) -> Cohorts:
    """Return the cohorts after the removal of ``count`` replicas from the cohort at an index."""
    cohort = cohorts[index]
    rest = (structs.replace(cohort, count=cohort.count - count),) if cohort.count > count else ()
    return (*cohorts[:index], *rest, *cohorts[index + 1 :])


def moved_last(cohorts: Cohorts, position: int, count: int) -> Cohorts:
    """Move the ``count`` replicas that begin at a position to the end; return the cohorts.

    They must be all replicas of one pod template: no cohort contains replicas of two templates.
    """
    ends = list(accumulate(cohort.count for cohort in cohorts))
    first = sum(end <= position for end in ends)
    last = sum(end <= position + count for end in ends)
    return (*cohorts[:first], *cohorts[last:], *cohorts[first:last])


def take(cohorts: list[Cohort], count: int) -> Cohorts:
    """Remove the first ``count`` replicas from a list of cohorts; return the removed replicas."""
    taken: list[Cohort] = []
    while count > 0:
        first = cohorts[0]
        part = min(count, first.count)
        taken.append(structs.replace(first, count=part))
        count -= part
        cohorts[:1] = [structs.replace(first, count=first.count - part)] if part < first.count else []
    return tuple(taken)


def started(cohorts: Cohorts, at_ms: int) -> Cohorts:
    """Return all cohorts; those that are ready at ``at_ms`` are marked as running."""
    return shared(
        tuple(
            structs.replace(cohort, running=True) if is_due(cohort, at_ms) else cohort for cohort in cohorts
        )
    )


def is_due(cohort: Cohort, at_ms: int) -> bool:
    return not cohort.running and cohort.ready_ms <= at_ms


def merged(cohorts: Cohorts) -> Cohorts:
    """Return the cohorts; if there are too many, the oldest ones that run are merged."""
    while len(cohorts) > _MERGED_MAX and cohorts[0].running and cohorts[1].running:
        first, second, *others = cohorts
        count = first.count + second.count
        cohorts = (structs.replace(second, count=count, created_ms=first.created_ms), *others)
    return cohorts
