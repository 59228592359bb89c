"""Scheduling priority: announce PriorityClasses to all shards and resolve the priorities of bindings.

As in Karmada, a binding's priority is resolved when its template or policy is written; a later change
of the class takes effect at the next such write. A policy whose class does not exist is not applied
(``propagation``).
"""

from engine.deciders import priority_classes, propagation
from engine.deciders.facts import Facts
from engine.deciders.state import Binding, Template
from engine.deciders.step_outputs import Outputs, View
from events import decisions, enums, keys, policies


def announce(key: str, template: Template | None, view: View) -> Outputs[None]:
    """Publish the PriorityClass with this key as a fact for all shards if it differs from the known fact."""
    name = keys.priority_class_of(key)
    priority_class = template.priority_class if template else None
    if priority_class == view.facts.priority_classes.get(name):
        return
    if priority_class is None:
        yield policies.PriorityClassGone(name=name)
        return
    yield policies.PriorityClassDeclared(
        name=name,
        value=priority_class.value,
        global_default=priority_class.global_default,
        # An enum member, not a str: omit_defaults compares by identity, so equal text from a snapshot would
        # be written out and change the recorded bytes.
        preemption_policy=enums.PreemptionPolicy(priority_class.preemption_policy),
    )


def decide(binding: Binding, view: View) -> Outputs[None]:
    """Resolve the priority that the binding's policy names; a binding without policy keeps its last priority."""
    claim, template = binding.claim, binding.template
    if claim is None or template is None or (claim.schedule_priority is None and binding.rank is None):
        return
    resolved = decisions.PriorityResolved(key=binding.key)
    if claim.schedule_priority is not None:
        resolution = priority_classes.resolve(claim.schedule_priority, template, view.facts)
        if isinstance(resolution, priority_classes.UnresolvedPriority):
            return
        resolved = decisions.PriorityResolved(
            key=binding.key,
            priority=resolution.value,
            preemption_policy=resolution.preemption_policy,
            class_name=resolution.name,
        )
    if resolved != (binding.rank or decisions.PriorityResolved(key=binding.key)):
        yield resolved


def priority_of(binding: Binding, facts: Facts) -> int:
    """Return the priority for the order of the queue: the resolved one, or the one about to be resolved."""
    template = binding.template
    if binding.rank is not None or template is None or binding.claim is not None:
        return binding.priority
    _, chosen = propagation.choose(None, template, facts)
    source = None if chosen is None else propagation.schedule_priority(chosen.policy.spec)
    if source is None:
        return 0
    resolution = priority_classes.resolve(source, template, facts)
    return 0 if isinstance(resolution, priority_classes.UnresolvedPriority) else resolution.value
