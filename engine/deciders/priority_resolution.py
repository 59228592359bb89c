"""Scheduling priority: announce PriorityClasses to all shards and resolve the priorities of bindings.

As in the reference, a binding's priority is resolved when its template or policy is written; a later change
of the class takes effect at the next such write. A binding whose class did not exist is resolved when the
class is created.
"""

from typing import Final

from engine.deciders import propagation, step_outputs
from engine.deciders.facts import Facts
from engine.deciders.state import Binding, Template
from engine.objects import priorities
from engine.objects.priorities import PriorityClass
from events import decisions, enums, keys, policies

KUBE: Final = "KubePriorityClass"
POD: Final = "PodPriorityClass"


def announce(key: str, template: Template | None, facts: Facts, emit: step_outputs.Emitter) -> None:
    """Publish the PriorityClass with this key as a fact for all shards if it differs from the known fact."""
    name = keys.priority_class_of(key)
    priority_class = template.priority_class if template else None
    if priority_class == facts.priority_classes.get(name):
        return
    if priority_class is None:
        deleted = policies.PriorityClassGone(name=name)
        emit.fact(deleted)
        return
    declared = policies.PriorityClassDeclared(
        name=name,
        value=priority_class.value,
        global_default=priority_class.global_default,
        # An enum member, not a str: omit_defaults compares by identity, so equal text from a snapshot would
        # be written out and change the recorded bytes.
        preemption_policy=enums.PreemptionPolicy(priority_class.preemption_policy),
    )
    emit.fact(declared)


def decide(binding: Binding, facts: Facts, emit: step_outputs.Emitter) -> None:
    """Resolve the priority that the binding's policy names; a binding without policy keeps its last priority."""
    claim, template = binding.claim, binding.template
    if claim is None or template is None or (claim.schedule_priority is None and binding.rank is None):
        return
    resolved = _resolve(binding.key, claim.schedule_priority, template, facts)
    if resolved != (binding.rank or decisions.PriorityResolved(key=binding.key)):
        emit.decide(resolved)


def priority_of(binding: Binding, facts: Facts) -> int:
    """Return the priority for the order of the queue: the resolved one, or the one about to be resolved."""
    template = binding.template
    if binding.rank is not None or template is None or binding.claim is not None:
        return binding.priority
    _, chosen = propagation.choose(None, template, facts)
    if chosen is None:
        return 0
    priority = propagation.schedule_priority(chosen.policy.spec)
    return _resolve(binding.key, priority, template, facts).priority or 0


def _resolve(
    key: str, source: decisions.SchedulePriority | None, template: Template, facts: Facts
) -> decisions.PriorityResolved:
    if source is None:
        return decisions.PriorityResolved(key=key)
    if source.source not in {KUBE, POD}:
        return _unresolved(key, source.name, f"priorityClassSource {source.source} is not supported")
    name = source.name if source.source == KUBE else template.size.priority_class
    priority_class = facts.priority_classes.get(name) or priorities.SYSTEM.get(name)
    if name and priority_class is None:
        return _unresolved(key, name, f"PriorityClass {name} does not exist")
    if not name:
        name, priority_class = _default(facts)
    if priority_class is None:
        return decisions.PriorityResolved(key=key, priority=0, preemption_policy=priorities.NEVER)
    return decisions.PriorityResolved(
        key=key,
        priority=priority_class.value,
        preemption_policy=priority_class.preemption_policy,
        class_name=name,
    )


def _unresolved(key: str, name: str, fault: str) -> decisions.PriorityResolved:
    return decisions.PriorityResolved(
        key=key, priority=0, preemption_policy=priorities.NEVER, class_name=name, fault=fault
    )


def _default(facts: Facts) -> tuple[str, PriorityClass | None]:
    """Return the global default class; of several the one with the lowest value, as in Kubernetes."""
    defaults = [
        (priority_class.value, name)
        for name, priority_class in facts.priority_classes.items()
        if priority_class.global_default
    ]
    name = min(defaults)[1] if defaults else ""
    return name, facts.priority_classes.get(name)
