"""Find the PriorityClass that gives a workload its scheduling priority."""

from typing import Final

from msgspec import Struct

from engine.deciders.facts import Facts
from engine.deciders.state import Template
from engine.objects import priorities
from engine.objects.priorities import PriorityClass
from events import decisions

_KUBE: Final = "KubePriorityClass"
_POD: Final = "PodPriorityClass"


class ResolvedPriority(Struct, frozen=True):
    """A priority and its preemption policy; ``name`` is that of the PriorityClass, empty if there is none."""

    value: int
    preemption_policy: str
    name: str = ""


class UnresolvedPriority(Struct, frozen=True):
    """The result of ``resolve`` if a priority cannot be resolved, with the reason."""

    reason: str


def resolve(
    source: decisions.SchedulePriority, template: Template, facts: Facts
) -> ResolvedPriority | UnresolvedPriority:
    """Return the priority that a policy sets for a template, or the reason why it cannot be resolved."""
    if source.source not in {_KUBE, _POD}:
        return UnresolvedPriority(f"priorityClassSource {source.source} is not supported")
    name = source.name if source.source == _KUBE else template.size.priority_class
    priority_class = facts.priority_classes.get(name) or priorities.SYSTEM.get(name)
    if name and priority_class is None:
        return UnresolvedPriority(f"PriorityClass {name} does not exist")
    if not name:
        name, priority_class = _default(facts)
    if priority_class is None:
        return ResolvedPriority(0, priorities.NEVER)
    return ResolvedPriority(priority_class.value, priority_class.preemption_policy, name)


def _default(facts: Facts) -> tuple[str, PriorityClass | None]:
    """Return the name and class of the global default, or ("", None).

    If there are several, the one with the lowest value is used, as in Kubernetes.
    """
    defaults = [
        (priority_class.value, name)
        for name, priority_class in facts.priority_classes.items()
        if priority_class.global_default
    ]
    name = min(defaults)[1] if defaults else ""
    return name, facts.priority_classes.get(name)
