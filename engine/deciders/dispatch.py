"""Dispatch works: send one to each cluster whose work differs from the last one sent.

A binding goes to its assigned clusters and to those in which other bindings require it. A cluster from which the
binding is evicted gracefully keeps its work until the eviction ends; a leaving cluster keeps only what the policy
preserves. A suspended cluster gets one ``suspended`` work and nothing more until the suspension ends; removals
are never suspended. A binding without policy keeps its works, also suspended ones, unless other bindings need it.
A work names the override policies that select its cluster (errors in them are found when the work is rendered), the
status values to report, the labels with preserved state (see ``state_preservation``), and whether it takes over
objects that exist already.

The ResourceQuotas that a FederatedResourceQuota assigns are sent to the clusters it names; no policy or scheduling
decision is needed (see ``quota_assignments``).
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np

from engine.deciders import needs, record_sizes, required_bindings, state_preservation, step_outputs
from engine.deciders.facts import Facts
from engine.deciders.placement_cache import Placements
from engine.deciders.quota_assignments import Assignments
from engine.deciders.state import Binding, Declared, Dispatched
from engine.domain.bindings import Targets
from engine.objects import workloads
from engine.overrides import selection
from engine.placement import division
from events import decisions, enums, shapes, vocabulary, works

NO_REPLICAS: Final = -1


def decide(
    binding: Binding,
    facts: Facts,
    placements: Placements,
    emit: step_outputs.Emitter,
    *,
    preserved: bool = False,
    left: AbstractSet[str] = required_bindings.NO_CLUSTERS,
) -> None:
    """Emit changed and removed works, and one decision that lists them (several if it would be too large).

    ``preserved``: removed works leave the workload running in their clusters. ``left``: clusters in which it is
    left running even without ``preserved``.
    """
    dispatched: list[decisions.DispatchedWork] = []
    declared, claim = binding.declared, binding.claim
    required = required_bindings.clusters(emit.shard, binding.key)
    assigned = dict(binding.clusters)
    kept = {task.cluster for task in binding.tasks if task.purge_mode != vocabulary.PURGE_DIRECTLY}
    leaving = binding.works.keys() & facts.leaving
    quotas = facts.quotas.get(binding.key) if facts.quotas and declared is None else None
    quota_clusters = _members(facts, quotas) if quotas is not None else required_bindings.NO_CLUSTERS
    removed = binding.works.keys() - assigned.keys() - kept - required - quota_clusters
    # Sorted: the order of a set differs between processes, and a step that is computed again must equal the record.
    for cluster in sorted(removed | leaving):
        dispatched.append(decisions.DispatchedWork(cluster=cluster, state="removed"))
        is_left = cluster in left or (cluster in leaving and needs.preserves(emit.shard, binding))
        _send(emit, binding.key, cluster, None, preserved=preserved or is_left)
    if declared is not None and (claim is not None or required):
        for work in _desired_works(binding, declared, required, facts, placements, emit):
            previous, is_suspended = binding.works.get(work.cluster), binding.is_suspended_in(work.cluster)
            new_work = _new_work(previous, declared, work, is_suspended=is_suspended)
            if new_work is not None:
                dispatched.append(new_work)
                _send(emit, binding.key, work.cluster, new_work, declared=declared)
    if quotas is not None:
        dispatched += _assigned_quotas(binding, quotas, quota_clusters, emit)
    digest = declared.digest if declared else ""
    for portion in record_sizes.portions(tuple(dispatched)) if dispatched else ():
        emit.decide(decisions.BindingDispatched(key=binding.key, digest=digest, works=portion))


def _desired_works(
    binding: Binding,
    declared: Declared,
    required: AbstractSet[str],
    facts: Facts,
    placements: Placements,
    emit: step_outputs.Emitter,
) -> Iterator[decisions.DispatchedWork]:
    """Yield the work that each cluster of a binding should have if nothing is suspended."""
    selecting = facts.overrides.policies_for(binding.template) if binding.template else ()
    reading = state_preservation.reading(binding.claim, facts.reading(declared.ref))
    ref = declared.ref
    overwrites = _overwrites(binding, emit)
    is_counted = declared.replicas is not None and not workloads.is_single(ref.api_version, ref.kind)
    completions = _completions(binding, placements)
    for cluster, count in _targets(binding, declared, required) if required else binding.clusters:
        # A binding that could not be scheduled again may still name a cluster that has left.
        if cluster in facts.leaving or facts.fleet.get(cluster) is None:
            continue
        overrides: tuple[shapes.OverrideRef, ...] = ()
        if selecting:
            overrides = facts.overrides.rules_for(selecting, cluster, facts.fleet)
        yield decisions.DispatchedWork(
            cluster=cluster,
            state="applied",
            replicas=count if is_counted else NO_REPLICAS,
            overrides=overrides,
            labels=state_preservation.labels(binding, cluster),
            reading=reading,
            overwrites=overwrites,
            completions=completions.get(cluster),
        )


def _overwrites(binding: Binding, emit: step_outputs.Emitter) -> bool:
    """Whether works overwrite existing objects: by the template, its policy or, without policy, dependent bindings."""
    if binding.template is not None and binding.template.overwrites:
        return True
    if binding.claim is None:
        return needs.overwrites(emit.shard, binding)
    return binding.claim.conflict_resolution == enums.ConflictResolution.OVERWRITE


def _members(facts: Facts, quotas: Assignments) -> frozenset[str]:
    """Return the clusters that the assignments name, without those that are leaving or are no members."""
    return frozenset(name for name in quotas.quotas if facts.fleet.get(name) and name not in facts.leaving)


def _assigned_quotas(
    binding: Binding, quotas: Assignments, clusters: AbstractSet[str], emit: step_outputs.Emitter
) -> Iterator[decisions.DispatchedWork]:
    """Send each of ``clusters`` its assigned ResourceQuota if that has changed; yield the works that are sent."""
    source = Declared(quotas.quota, "", 0, quotas.offset, "", None, None)
    for cluster in sorted(clusters):
        work = decisions.DispatchedWork(
            cluster=cluster,
            state="applied",
            replicas=NO_REPLICAS,
            overrides=(quotas.override(cluster),),
            overwrites=True,
        )
        new_work = _new_work(binding.works.get(cluster), source, work)
        if new_work is not None:
            yield new_work
            _send(emit, binding.key, cluster, new_work, declared=source)


def _completions(binding: Binding, placements: Placements) -> dict[str, int]:
    """Return a Job's completions by cluster, in proportion to its replicas; empty unless the placement divides them."""
    template, claim = binding.template, binding.claim
    total = template.size.completions if template is not None else None
    if template is None or total is None or claim is None or not binding.clusters:
        return {}
    scheduling = placements.get(claim.placement).replica_scheduling
    if scheduling is None or scheduling.replica_scheduling_type != vocabulary.DIVIDED:
        return {}
    votes = np.array([count for _, count in binding.clusters], dtype=np.int64)
    shares = division.divide(votes, total, descending=division.breaks_ties_descending(template.uid))
    return {cluster: int(share) for (cluster, _), share in zip(binding.clusters, shares, strict=True)}


def _targets(binding: Binding, declared: Declared, required: AbstractSet[str]) -> Targets:
    """Return (cluster, replicas) for the assigned clusters, if a policy claims the binding, and for required ones."""
    assigned = binding.clusters if binding.claim is not None else ()
    others = required - {name for name, _ in assigned}
    return (*assigned, *((name, declared.replicas or 0) for name in sorted(others)))


def _new_work(
    previous: Dispatched | None,
    declared: Declared,
    work: decisions.DispatchedWork,
    *,
    is_suspended: bool = False,
) -> decisions.DispatchedWork | None:
    """Return the work to send to a cluster; None if the cluster has it already."""
    if is_suspended:
        if previous is not None and previous.suspended:
            return None
        return decisions.DispatchedWork(cluster=work.cluster, state="suspended", replicas=work.replicas)
    if previous is None or previous.suspended:
        return work
    is_known = (
        previous.digest == declared.digest
        and previous.replicas == work.replicas
        and previous.labels == work.labels
        and previous.reading == work.reading
        and previous.overwrites == work.overwrites
        and previous.completions == work.completions
    )
    if is_known and selection.are_equal(previous.overrides, work.overrides):
        return None
    return work


def _send(
    emit: step_outputs.Emitter,
    key: str,
    cluster: str,
    work: decisions.DispatchedWork | None,
    *,
    declared: Declared | None = None,
    preserved: bool = False,
) -> None:
    term, step = emit.term, emit.step
    if work is None or declared is None:
        removed = works.WorkRemoved(cluster=cluster, key=key, term=term, step=step, preserved=preserved)
        emit.send(removed)
    elif work.state == "suspended":
        emit.send(works.WorkSuspended(cluster=cluster, key=key, term=term, step=step))
    else:
        applied = works.WorkApplied(
            cluster=cluster,
            key=key,
            template=declared.ref,
            shard=emit.shard.shard,
            offset=declared.offset,
            digest=declared.digest,
            term=term,
            step=step,
            replicas=None if work.replicas == NO_REPLICAS else work.replicas,
            overrides=work.overrides,
            labels=work.labels,
            reading=work.reading,
            overwrites=work.overwrites,
            completions=work.completions,
        )
        emit.send(applied)
