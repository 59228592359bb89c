"""Scheduling priority: what a PriorityClass says is told to all shards; bindings get theirs by what their policy names.

As in the reference a binding's priority is looked up when its template or its policy is written; a class that changes
later reaches it with the next of these writes. One whose class was not there gets its priority when the class comes.
"""

from typing import Final

from engine.deciders import emitting, propagation
from engine.deciders.facts import Facts
from engine.deciders.state import Binding, Template
from engine.objects import priorities
from engine.objects.priorities import PriorityClass
from events import decisions, enums, keys, policies

KUBE: Final = "KubePriorityClass"
POD: Final = "PodPriorityClass"


def announce(key: str, template: Template | None, facts: Facts, emit: emitting.Emitter) -> None:
    """Tells all shards what the PriorityClass with this key says, where they know otherwise."""
    name = keys.priority_class_of(key)
    said = template.priority_class if template else None
    if said == facts.priority_classes.get(name):
        return
    if said is None:
        gone = policies.PriorityClassGone(name=name)
        emit.fact(gone, keys.object_key(priorities.KIND, "", name))
        return
    declared = policies.PriorityClassDeclared(
        name=name,
        value=said.value,
        global_default=said.global_default,
        preemption_policy=enums.PreemptionPolicy(said.preemption_policy),
    )
    emit.fact(declared, keys.object_key(priorities.KIND, "", name))


def decide(binding: Binding, facts: Facts, emit: emitting.Emitter) -> None:
    """Gives a binding the priority that its policy names; what no policy places any more keeps its own."""
    claim, template = binding.claim, binding.template
    if claim is None or template is None or (claim.schedule_priority is None and binding.rank is None):
        return
    wanted = _resolved(binding.key, claim.schedule_priority, template, facts)
    if wanted != (binding.rank or decisions.PriorityResolved(key=binding.key)):
        emit.decide(wanted, binding.key)


def priority_of(binding: Binding, facts: Facts) -> int:
    """By what the binding is ordered among those that wait: its priority, or the one that it is about to get."""
    template = binding.template
    if binding.rank is not None or template is None or binding.claim is not None:
        return binding.priority
    _, chosen = propagation.choose(None, template, facts)
    if chosen is None:
        return 0
    wanted = propagation.schedule_priority(chosen.policy.spec)
    return _resolved(binding.key, wanted, template, facts).priority or 0


def _resolved(
    key: str, wanted: decisions.SchedulePriority | None, template: Template, facts: Facts
) -> decisions.PriorityResolved:
    if wanted is None:
        return decisions.PriorityResolved(key=key)
    if wanted.source not in {KUBE, POD}:
        return _missing(key, wanted.name, f"priorityClassSource {wanted.source} is not supported")
    name = wanted.name if wanted.source == KUBE else template.size.priority_class
    known = facts.priority_classes.get(name) or priorities.SYSTEM.get(name)
    if name and known is None:
        return _missing(key, name, f"PriorityClass {name} does not exist")
    if not name:
        name, known = _default(facts)
    if known is None:
        return decisions.PriorityResolved(key=key, priority=0, preemption_policy=priorities.NEVER)
    return decisions.PriorityResolved(
        key=key, priority=known.value, preemption_policy=known.preemption_policy, class_name=name
    )


def _missing(key: str, name: str, fault: str) -> decisions.PriorityResolved:
    return decisions.PriorityResolved(
        key=key, priority=0, preemption_policy=priorities.NEVER, class_name=name, fault=fault
    )


def _default(facts: Facts) -> tuple[str, PriorityClass | None]:
    """The class for what names none; of several the lowest, as in Kubernetes."""
    found = [(each.value, name) for name, each in facts.priority_classes.items() if each.global_default]
    name = min(found)[1] if found else ""
    return name, facts.priority_classes.get(name)
