"""Rolling updates of a member's workloads: which pods are created and removed next, as pure functions of a workload.

Replicas of former pod templates come first in ``cohorts``, all of them ready, then those of the current one.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import structs

from engine.simulation import cohorts
from engine.simulation.state import Workload
from engine.works import strategies
from engine.works.strategies import Strategy
from engine.works.templates import Template

FORMER_SLOTS: Final = 10_000_000
"""Distance between the slots of a Deployment's ReplicaSets, so that no two pods of a workload share a slot."""


class Step(NamedTuple):
    """Number of pods of the current template to create (negative: to remove), and of former templates to remove."""

    created: int
    removed: int


def is_ordered(workload: Workload) -> bool:
    """Whether pods of former and of current templates share one range of slots, as in a StatefulSet."""
    return workload.ref.kind in strategies.ORDERED


def slots(replaced: Mapping[int, int], count: int) -> Iterable[int]:
    """Return the slots of ``count`` replicas, oldest replica first: slots whose pods were replaced come last."""
    if not replaced:
        return range(count)
    return [
        *(slot for slot in range(count) if slot not in replaced),
        *(slot for slot in replaced if slot < count),
    ]


def replaced_pods(workload: Workload) -> dict[int, int]:
    """Return ``Workload.replaced`` as a dict that the caller may change."""
    if not isinstance(workload.replaced, dict):
        workload.replaced = {}
    return workload.replaced


def count_replacement(replaced: dict[int, int], slot: int) -> None:
    """Count one more replacement of a slot, and move it to the end: its replica is the youngest now."""
    replaced[slot] = replaced.pop(slot, 0) + 1


def current_slots(workload: Workload) -> Iterable[int]:
    """Return the slots of the current pod template's replicas, oldest first; ended pods of a Job come first."""
    count = workload.succeeded + workload.admitted + workload.pending
    if not workload.former_pods:
        return slots(workload.replaced, count)
    if not is_ordered(workload):
        return slots(workload.replaced, count - workload.outdated)
    former = {slot for former in workload.former_pods for slot in former.slots}
    return [slot for slot in slots(workload.replaced, count) if slot not in former]


def template_at(workload: Workload, position: int) -> Template:
    """Return the pod template of the replica at a position."""
    for former in workload.former_pods:
        if position < len(former.slots):
            return former.template
        position -= len(former.slots)
    return workload.template


def next_step(workload: Workload, strategy: Strategy, replicas: int) -> Step:
    """Return the next step of a Deployment's rollout, as its controller takes it."""
    former = workload.outdated
    current = workload.admitted - former + workload.pending
    if strategy.is_paused:
        surplus = former + current - replicas
        return Step(max(-surplus, 0), min(max(surplus, 0), former))
    created = min(replicas, replicas + strategy.surge(replicas) - former) - current
    least = replicas - strategy.unavailable(replicas)
    return Step(
        created if created > 0 else min(replicas - current, 0), min(former, max(workload.ready - least, 0))
    )


def last_slot(workload: Workload) -> int:
    """Return the highest slot with a replica of a former pod template; -1 if there is none."""
    return max((slot for former in workload.former_pods for slot in former.slots), default=-1)


def next_slot(workload: Workload, strategy: Strategy, replicas: int) -> int | None:
    """Return the slot whose pod is replaced next.

    Return None if all slots from ``strategy.partition`` on have new pods, or if too many pods are not ready.
    """
    slot = last_slot(workload)
    limit = strategy.unavailable(replicas) or strategy.surge(replicas)
    return None if slot < strategy.partition or replicas - workload.ready >= limit else slot


def former_position(workload: Workload, slot: int) -> int:
    """Return the position of the replica of a former template in a slot; -1 if there is none."""
    order = [slot for former in workload.former_pods for slot in former.slots]
    return order.index(slot) if slot in order else -1


def groups(workload: Workload) -> list[Workload]:
    """Return one workload per pod template, each with the replicas of that template; the current template is last."""
    if not workload.former_pods:
        return [workload]
    result: list[Workload] = []
    rest = list(workload.cohorts)
    for index, former in enumerate(workload.former_pods):
        base = 0 if is_ordered(workload) else (index + 1) * FORMER_SLOTS
        result.append(
            structs.replace(
                workload,
                template=former.template,
                replicas=len(former.slots),
                cohorts=cohorts.take(rest, len(former.slots)),
                pending=0,
                former_pods=(),
                replaced=former.replaced,
                slots=[base + slot for slot in former.slots],
                source=former.source,
            )
        )
    current = sum(cohort.count for cohort in rest) + workload.pending
    result.append(
        structs.replace(
            workload,
            replicas=current,
            cohorts=tuple(rest),
            former_pods=(),
            slots=list(current_slots(workload)),
        )
    )
    return result
