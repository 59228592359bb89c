"""Claim a template for its policy and declare its binding.

A claim holds until its policy is deleted, changes so that it no longer selects the template, or is preempted.
Then the best other policy claims the template, or the binding is released and its workload keeps running. If the
template changes so that its policy no longer selects it, the claim and the placement stay, as in Karmada. Deleting
the template withdraws the binding from all clusters.

A lazy policy claims an existing template only at the template's next write. Until then the template is marked with the
policy's labels and annotations, and other policies can claim it only by preempting the lazy one; this also holds if the
policy is no longer lazy. But when the claim of a policy ends, the best other policy claims the template at once even if
it is lazy. An imported template keeps an older placement of its lazy policy until the template's next write.

A policy whose PriorityClass or dependent override policies do not exist is not applied until they are created. Until
then, an existing binding stays as it is, and a new one is not declared.
"""

from typing import Final

import msgspec
from msgspec import structs

from engine.deciders import claims, needs, overall_quotas, priority_classes, quota_amounts
from engine.deciders import state as states
from engine.deciders.claims import Outcome
from engine.deciders.facts import Facts, KnownPolicy
from engine.deciders.overall_quotas import Pending, Refused
from engine.deciders.state import Binding, Template
from engine.deciders.step_outputs import Outputs, View
from engine.domain import bindings
from engine.objects import placements, workloads
from engine.objects import policies as policy_objects
from engine.overrides import policies as overrides
from events import decisions, enums, shapes

_NO_VERSION: Final = 0
_NODE_CLAIM: Final = msgspec.json.Decoder(shapes.Object)
_PLACEMENT: Final = msgspec.json.Decoder(placements.Placement)


def decide(binding: Binding, flags: int, view: View) -> Outputs[bool]:
    """Declare and claim a binding, release or withdraw it; return whether removed works leave the workload running."""
    template = binding.template
    if template is None:
        return (yield from withdraw(binding, flags, view))
    holder = _holder(binding, template)
    outcome, chosen = choose(holder, template, view.facts)
    if outcome == Outcome.LAPSED and (kept := _retaining_policy(holder, binding, view.facts)) is not None:
        if binding.claim is not None:
            return False
        chosen = kept
    may_be_admitted = flags & states.QUOTA and binding.has_undeclared_write
    is_written = flags & states.SPEC or _was_refused(binding, chosen) or may_be_admitted
    waiting = chosen if chosen is not None and _waits_for_writes(binding, chosen) and not is_written else None
    if waiting is not None and (binding.claim is None or outcome in {Outcome.HELD, Outcome.PREEMPTED}):
        if binding.claim is not None and outcome == Outcome.HELD:
            yield from _restore_marks(binding)
        else:
            yield from _mark(binding, waiting, outcome, view.facts)
        return False
    # The end of a claim changes the template's labels. As in Karmada, this counts as a write of the template, so a lazy
    # policy claims it below.
    if chosen is None or (waiting is not None and binding.marked is not None):
        yield from _release(binding, view.facts)
        if waiting is not None:
            yield from _mark(binding, waiting, outcome, view.facts)
        return False
    if (yield from _refuse(binding, template, chosen, view)):
        return False
    yield from declare(binding, template, view)
    yield from _claim(binding, template, chosen, is_preemption=outcome == Outcome.PREEMPTED)
    if outcome == Outcome.HELD:
        yield from _restore_marks(binding)
    return False


def _waits_for_writes(binding: Binding, chosen: KnownPolicy) -> bool:
    """Whether a policy claims the template only at a write: it is lazy, or was lazy when it marked the template."""
    return chosen.policy.spec.is_lazy or binding.marked == _mark_of(chosen)


def _mark_of(policy: KnownPolicy) -> bindings.Mark:
    return bindings.Mark(policy.policy.ref, policy.permanent_id)


def _was_refused(binding: Binding, chosen: KnownPolicy | None) -> bool:
    """Whether the last recorded refusal concerns the chosen policy, not an earlier one."""
    return chosen is not None and binding.refused is not None and binding.refused.policy == chosen.policy.ref


def _release(binding: Binding, facts: Facts) -> Outputs[None]:
    """End the claim of a policy, or the mark of a policy that would have claimed the template."""
    last = binding.claim or binding.marked
    if last is not None:
        reason = "PolicySelectsNoMore" if last.policy in facts.known_policies else "PolicyDeleted"
        yield decisions.BindingReleased(key=binding.key, policy=last.policy, reason=reason)


def _mark(binding: Binding, lazy: KnownPolicy, outcome: Outcome, facts: Facts) -> Outputs[None]:
    """Give the template the labels of a lazy policy that will claim it.

    As in Karmada, only a preemption does not wait until the override policies that the lazy policy needs exist.
    """
    may_mark = outcome == Outcome.PREEMPTED or _missing_override(lazy, facts) is None
    if may_mark and binding.marked != _mark_of(lazy):
        preempted = None if binding.claim is None else binding.claim.policy
        yield decisions.TemplateMarked(
            key=binding.key, policy=lazy.policy.ref, permanent_id=lazy.permanent_id, preempted=preempted
        )


def _restore_marks(binding: Binding) -> Outputs[None]:
    """Give the template the labels of the claiming policy again, if it has those of a lazy one."""
    claim = binding.claim
    if claim is not None and binding.marked is not None:
        yield decisions.TemplateMarked(key=binding.key, policy=claim.policy, permanent_id=claim.permanent_id)


def _refuse(binding: Binding, template: Template, chosen: KnownPolicy, view: View) -> Outputs[bool]:
    """Return whether the policy cannot be applied to the template now; record the reason if it is a new refusal."""
    obstacle = yield from _obstacle(binding, template, chosen, view)
    if isinstance(obstacle, Refused):
        refused = decisions.ClaimRefused(
            key=binding.key,
            template=template.ref,
            uid=template.uid,
            policy=chosen.policy.ref,
            fault=obstacle.fault,
        )
        if refused != binding.refused:
            yield refused
    return obstacle is not None


def _obstacle(
    binding: Binding, template: Template, chosen: KnownPolicy, view: View
) -> Outputs[Pending | Refused | None]:
    """Return why the policy cannot be applied now; None if it can."""
    missing = _missing_override(chosen, view.facts)
    if missing is not None:
        return Refused(f"{missing.kind} {missing.name} does not exist")
    source = schedule_priority(chosen.policy.spec)
    resolution = None if source is None else priority_classes.resolve(source, template, view.facts)
    if isinstance(resolution, priority_classes.UnresolvedPriority):
        return Refused(resolution.reason)
    if not view.facts.overall or binding.declared is None:
        return None
    resource_requests = _size(template, view.facts).requests
    if resource_requests == binding.declared.requests:
        return None
    amounts = quota_amounts.amounts(resource_requests, quota_amounts.replicas(binding.clusters))
    return (yield from overall_quotas.admit(binding, amounts, view))


def _missing_override(policy: KnownPolicy, facts: Facts) -> shapes.PolicyRef | None:
    """Return the first override policy that a policy needs but that does not exist; None if there is no such policy."""
    needed = overrides.required_overrides(policy.policy)
    return next((override for override in needed if override not in facts.overrides), None)


def _holder(binding: Binding, template: Template) -> shapes.PolicyRef | None:
    """Return the policy that claims or will claim the template; before the first claim, the imported one."""
    last = binding.claim or binding.marked
    if last is not None:
        return last.policy
    return template.imported.policy if template.imported is not None and binding.declared is None else None


def is_recreated(binding: Binding) -> bool:
    """Whether the declared template was deleted, and a new one created under its name, since the last step."""
    template, declared = binding.template, binding.declared
    return template is not None and declared is not None and declared.uid != template.uid


def _retaining_policy(holder: shapes.PolicyRef | None, binding: Binding, facts: Facts) -> KnownPolicy | None:
    """Return the holding policy if it keeps a template that it does not select; None if the claim lapses.

    As in Karmada, the claim lapses if the policy has changed since the claim, or is deleted. For an imported template,
    changes of the policy do not count while no claim is recorded, or while the recorded claim has an older placement
    (its version is ``_NO_VERSION``).
    """
    claim, known = binding.claim, None if holder is None else facts.known_policies.get(holder)
    is_only_marked = claim is None and binding.marked is not None
    if known is None or known.policy.is_deleting or is_only_marked:
        return None
    return known if claim is None or claim.version in {known.version, _NO_VERSION} else None


def choose(
    holder: shapes.PolicyRef | None, template: Template, facts: Facts
) -> tuple[Outcome, KnownPolicy | None]:
    """Return the outcome of ``holder``'s claim, and the policy that keeps or gets the template (None: no policy)."""
    verdict = claims.claim(facts.policies, template, holder, preemption=True)
    # A lapsed claim passes to the best other policy in the same step; Karmada needs another pass.
    policy = facts.policies.best(template) if verdict.outcome == Outcome.LAPSED else verdict.policy
    return verdict.outcome, None if policy is None else facts.known_policies[policy.ref]


def withdraw(binding: Binding, flags: int, view: View) -> Outputs[bool]:
    """Withdraw the binding of a deleted template; return whether removed works leave the workload running."""
    is_orphaned = bool(flags & states.ORPHANED)
    if binding.declared is None:
        return is_orphaned
    preserved = needs.preserves(view.shard, binding)
    yield decisions.BindingWithdrawn(key=binding.key, reason=bindings.TEMPLATE_DELETED)
    return preserved or is_orphaned


def declare(binding: Binding, template: Template, view: View) -> Outputs[None]:
    """Declare the replicas and requests of the template if they differ from the declared ones."""
    size = _size(template, view.facts)
    previous = binding.declared
    if previous and (previous.digest, previous.replicas, previous.requests, previous.uid) == (
        template.digest,
        size.replicas,
        size.requests,
        template.uid,
    ):
        return
    yield decisions.BindingDeclared(
        key=binding.key,
        template=template.ref,
        uid=template.uid,
        generation=template.generation,
        offset=template.offset,
        digest=template.digest,
        replicas=size.replicas,
        requests=None if size.requests is None else dict(size.requests),
        node_claim=_NODE_CLAIM.decode(size.node_claim) if size.node_claim else {},
    )


def _size(template: Template, facts: Facts) -> workloads.Size:
    interpreter = facts.interpreter(template.ref)
    if interpreter is None or not template.custom:
        return template.size
    return workloads.custom_size(template.custom, interpreter.spec)


def _claim(
    binding: Binding,
    template: Template,
    chosen: KnownPolicy,
    *,
    is_preemption: bool,
) -> Outputs[None]:
    previous = binding.claim
    ref = chosen.policy.ref
    spec = chosen.policy.spec
    older = _older_placement(template, chosen)
    # Claims of older releases lack the fields for dependencies, priorities or schedulers, so they are made again.
    current = (ref, chosen.version, spec.propagate_deps, schedule_priority(spec), _scheduler(spec))
    if (
        previous
        and older is None
        and current
        == (
            previous.policy,
            previous.version,
            previous.propagate_deps,
            previous.schedule_priority,
            previous.scheduler,
        )
    ):
        return
    # If the template has the labels of a lazy policy, the preemption was recorded when the labels were set.
    preempted = previous.policy if previous and is_preemption and binding.marked is None else None
    made = claimed(binding.key, chosen, preempted)
    if older is not None:
        # Record no version, so that the policy claims the template with its current placement at the template's next
        # write.
        made = structs.replace(made, placement=older, version=_NO_VERSION)
    yield made


def _older_placement(template: Template, chosen: KnownPolicy) -> msgspec.Raw | None:
    """Return the older placement of a lazy policy with which the template was imported; None to use the current one."""
    imported = template.imported
    if (
        imported is None
        or not template.is_imported
        or not (imported.placement and chosen.policy.spec.is_lazy)
    ):
        return None
    if imported.policy != chosen.policy.ref:
        return None
    # Decoding drops unknown fields: the placement comes from an annotation, where these may be nested more deeply than
    # a record may be.
    return msgspec.Raw(msgspec.json.encode(_PLACEMENT.decode(imported.placement)))


def claimed(key: str, chosen: KnownPolicy, preempted: shapes.PolicyRef | None) -> decisions.BindingClaimed:
    """Return the decision that a policy claims a binding, with all that the policy sets for it."""
    spec = chosen.policy.spec
    suspension = spec.suspension or policy_objects.Suspension()
    return decisions.BindingClaimed(
        key=key,
        policy=chosen.policy.ref,
        permanent_id=chosen.permanent_id,
        version=chosen.version,
        placement=spec.placement,
        suspended=suspension.dispatching is True,
        resumed=suspension.dispatching is False,
        suspended_on=suspension.dispatching_on_clusters.cluster_names,
        # An enum member, not a str: omit_defaults compares by identity, so equal text from a snapshot would
        # be written out and change the recorded bytes.
        conflict_resolution=enums.ConflictResolution(spec.conflict_resolution),
        preserve_on_deletion=spec.preserve_resources_on_deletion,
        purge_mode=spec.purge_mode,
        failover=_failover(spec.failover),
        propagate_deps=spec.propagate_deps,
        preserved=_rules(spec.failover.cluster.state_preservation)
        if spec.failover and spec.failover.cluster
        else (),
        schedule_priority=schedule_priority(spec),
        deletes_last_copy=chosen.policy.deletes_last_copy,
        preempted=preempted,
        scheduler=_scheduler(spec),
    )


def schedule_priority(spec: policy_objects.PolicySpec) -> decisions.SchedulePriority | None:
    """Return the source of the priority that a policy sets; None if it sets none."""
    priority = spec.schedule_priority
    if priority is None:
        return None
    return decisions.SchedulePriority(
        source=priority.priority_class_source, name=priority.priority_class_name
    )


def _scheduler(spec: policy_objects.PolicySpec) -> str:
    return "" if spec.scheduler_name == bindings.DEFAULT_SCHEDULER else spec.scheduler_name


def _failover(failover: policy_objects.Failover | None) -> decisions.ApplicationFailover | None:
    application = failover.application if failover else None
    if application is None:
        return None
    return decisions.ApplicationFailover(
        toleration_seconds=application.decision_conditions.toleration_seconds,
        purge_mode=application.mode,
        grace_period_seconds=application.grace_period_seconds,
        preserved=_rules(application.state_preservation),
    )


def _rules(preservation: policy_objects.StatePreservation) -> tuple[shapes.StateRule, ...]:
    return tuple(
        shapes.StateRule(alias=rule.alias_label_name, path=rule.json_path) for rule in preservation.rules
    )
