"""Catalogue of all event types, by topic.

Readers find the struct of an event here; they never take the name of a class from data.
"""

from collections.abc import Iterator
from types import ModuleType
from typing import Final

from events import (
    cluster_decisions,
    clusters,
    decisions,
    group_decisions,
    health,
    links,
    observations,
    policies,
    preemption_decisions,
    quota_decisions,
    rebalance_decisions,
    rejections,
    shapes,
    specs,
    works,
)

_MODULES: Final = (
    specs,
    policies,
    clusters,
    health,
    decisions,
    cluster_decisions,
    rebalance_decisions,
    preemption_decisions,
    quota_decisions,
    group_decisions,
    links,
    works,
    rejections,
    observations,
)


def _recorded_in(module: ModuleType) -> Iterator[shapes.EventType]:
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, shapes.Event) and "event_type" in vars(value):
            yield value.event_type


EVENT_TYPES: Final = tuple(entry for module in _MODULES for entry in _recorded_in(module))

BY_TYPE: Final = {entry.type: entry for entry in EVENT_TYPES}
BY_ROUTE: Final = {
    entry.struct.route: entry.struct
    for entry in EVENT_TYPES
    if issubclass(entry.struct, shapes.ObjectApplied)
}
"""The type of the event that contains a whole object, by the route of the object's kind."""

STEP_TAKEN: Final = decisions.StepTaken.event_type.type


def types_of(*structs: type[shapes.Event]) -> frozenset[str]:
    """Return the CloudEvents types of these event structs."""
    return frozenset(struct.event_type.type for struct in structs)
