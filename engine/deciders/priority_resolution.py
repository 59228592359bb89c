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
        # An enum member, not a str: omit_defaults compares by identity, so equal text from a snapshot would
        # be written out and change the recorded bytes.
        preemption_policy=enums.PreemptionPolicy(said.preemption_policy),
    )
    emit.fact(declared, keys.object_key(priorities.KIND, "", name))


def decide(binding: Binding, facts: Facts, emit: step_outputs.Emitter) -> None:
    """Resolve the priority that the binding's policy names; a binding without policy keeps its last priority."""
    claim, template = binding.claim, binding.template
    if claim is None or template is None or (claim.schedule_priority is None and binding.rank is None):
        return
    wanted = _resolved(binding.key, claim.schedule_priority, template, facts)
    if wanted != (binding.rank or decisions.PriorityResolved(key=binding.key)):
        emit.decide(wanted, binding.key)


def priority_of(binding: Binding, facts: Facts) -> int:
    """Return the priority for the order of the queue: the resolved one, or the one about to be resolved."""
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
    """Return the global default class; of several the one with the lowest value, as in Kubernetes."""
    found = [(each.value, name) for name, each in facts.priority_classes.items() if each.global_default]
    name = min(found)[1] if found else ""
    return name, facts.priority_classes.get(name)
