"""Dispatch works: send one to each cluster whose work differs from the last one sent.

A binding has works in its assigned clusters and in those in which other bindings require it. A cluster from which the
binding is evicted gracefully keeps its work until the eviction ends; a leaving cluster keeps only what the policy
preserves. A cluster in which dispatching is suspended gets ``suspended`` works, which only show what it would get;
removals are never suspended. The works of a binding without policy stay as they are, also suspended ones, unless other
bindings need it. A work names the override policies that select its cluster (errors in them are found when the work is
rendered), the status values to report, the labels with preserved state (see ``state_preservation``), and whether it
takes over objects that exist already.

If a template is deleted and a new one created under its name, a cluster gets the new work once it has confirmed the
removal of the deleted template's work.

The ResourceQuotas that a FederatedResourceQuota assigns are sent to the clusters it names; no policy or scheduling
decision is needed (see ``quota_assignments``).
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec
import numpy as np

from engine.deciders import needs, record_sizes, required_bindings, state_preservation
from engine.deciders.facts import Facts
from engine.deciders.placement_cache import Placements
from engine.deciders.quota_assignments import Assignments
from engine.deciders.state import Binding, Declared, Dispatched, ShardState
from engine.deciders.step_outputs import Outputs, View
from engine.domain.bindings import Targets
from engine.objects import workloads
from engine.objects.placements import SchedulingType
from engine.overrides import selection
from engine.placement import division
from events import decisions, enums, shapes, vocabulary, works

NO_REPLICAS: Final = -1


def decide(
    binding: Binding,
    view: View,
    *,
    preserved: bool = False,
    kept_running_in: AbstractSet[str] = required_bindings.NO_CLUSTERS,
) -> Outputs[None]:
    """Emit changed and removed works, and one decision that lists them (several if it would be too large).

    With ``preserved``, a workload whose work is removed keeps running in its cluster. In the clusters in
    ``kept_running_in`` it keeps running even if ``preserved`` is False.
    """
    dispatched: list[decisions.DispatchedWork] = []
    declared, claim = binding.declared, binding.claim
    required = required_bindings.clusters(view.shard, binding.key)
    assigned = dict(binding.clusters)
    kept = {task.cluster for task in binding.tasks if task.purge_mode != vocabulary.PURGE_DIRECTLY}
    leaving = binding.works.keys() & view.facts.leaving
    quotas = view.facts.quotas.get(binding.key) if view.facts.quotas and declared is None else None
    quota_clusters = _members(view.facts, quotas) if quotas is not None else required_bindings.NO_CLUSTERS
    removed = binding.works.keys() - assigned.keys() - kept - required - quota_clusters
    # Sorted: the order of a set differs between processes, and a step that is computed again must equal the record.
    for cluster in sorted(removed | leaving):
        dispatched.append(decisions.DispatchedWork(cluster=cluster, state="removed"))
        is_left = cluster in kept_running_in or (cluster in leaving and needs.preserves(view.shard, binding))
        yield _removed(view, binding.key, cluster, preserved=preserved or is_left)
    if declared is not None and (claim is not None or required):
        for work in _desired_works(binding, declared, required, view):
            previous, is_suspended = binding.works.get(work.cluster), binding.is_suspended_in(work.cluster)
            new_work = _new_work(previous, declared, work, is_suspended=is_suspended)
            if new_work is not None:
                dispatched.append(new_work)
                yield _sent(view, binding.key, new_work, declared)
    if quotas is not None:
        source = Declared(quotas.quota, "", 0, quotas.offset, "", None, None)
        for new_work in _assigned_quotas(binding, quotas, quota_clusters, source):
            dispatched.append(new_work)
            yield _sent(view, binding.key, new_work, source)
    digest = declared.digest if declared else ""
    for portion in record_sizes.portions(tuple(dispatched)) if dispatched else ():
        yield decisions.BindingDispatched(key=binding.key, digest=digest, works=portion)


def _desired_works(
    binding: Binding,
    declared: Declared,
    required: AbstractSet[str],
    view: View,
) -> Iterator[decisions.DispatchedWork]:
    """Yield the work that each cluster of a binding should have if nothing is suspended."""
    selecting = view.facts.overrides.policies_for(binding.template) if binding.template else ()
    ref = declared.ref
    interpreter = view.facts.interpreter(ref)
    reading = state_preservation.reading(binding.claim, interpreter.reading if interpreter else None)
    overwrites = _overwrites(binding, view)
    is_counted = declared.replicas is not None and not workloads.is_single(ref.api_version, ref.kind)
    default = interpreter.spec.default_replicas if interpreter else None
    completions = _completions(binding, view.placements)
    for cluster, count in _targets(binding, declared, required) if required else binding.clusters:
        # If scheduling failed, the binding may still name a cluster that is no longer a member.
        if cluster in view.facts.leaving or view.facts.fleet.get(cluster) is None:
            continue
        if _runs_former(view.shard, cluster, binding.key):
            continue
        overrides: tuple[shapes.OverrideRef, ...] = ()
        if selecting:
            overrides = view.facts.overrides.rules_for(selecting, cluster, view.facts.fleet)
        yield decisions.DispatchedWork(
            cluster=cluster,
            state="applied",
            # Omit the count if this cluster has all replicas and their number is the interpreter's default: the
            # template may omit it too, and writing it could set a limit where the template has none.
            replicas=count if is_counted and not count == declared.replicas == default else NO_REPLICAS,
            overrides=overrides,
            labels=state_preservation.labels(binding, cluster),
            reading=reading,
            overwrites=overwrites,
            completions=completions.get(cluster),
        )


def _runs_former(shard: ShardState, cluster: str, key: str) -> bool:
    """Whether a cluster may still run the work of a former template with this key.

    An agent that gets the removal and the new work together would change the old object instead of replacing it.
    """
    removal = shard.removals.get(cluster, {}).get(key)
    return removal is not None and removal.is_withdrawn


def _overwrites(binding: Binding, view: View) -> bool:
    """Whether works overwrite existing objects, because the template, its policy or a dependent binding requests it.

    Dependent bindings count only if no policy has ever claimed the template.
    """
    if binding.template is not None and binding.template.overwrites:
        return True
    if binding.claim is None:
        return needs.overwrites(view.shard, binding)
    return binding.claim.conflict_resolution == enums.ConflictResolution.OVERWRITE


def _members(facts: Facts, quotas: Assignments) -> frozenset[str]:
    """Return the clusters that the assignments name, without those that are leaving or are not members."""
    return frozenset(name for name in quotas.quotas if facts.fleet.get(name) and name not in facts.leaving)


def _assigned_quotas(
    binding: Binding, quotas: Assignments, clusters: AbstractSet[str], source: Declared
) -> Iterator[decisions.DispatchedWork]:
    """Yield a work for each of ``clusters`` whose assigned ResourceQuota has changed.

    ``source`` has the reference of the ResourceQuota and the log offset of the FederatedResourceQuota.
    """
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


def _completions(binding: Binding, placements: Placements) -> dict[str, int]:
    """Return a Job's completions by cluster, in proportion to its replicas; empty unless the placement divides them."""
    template, claim = binding.template, binding.claim
    total = template.size.completions if template is not None else None
    if template is None or total is None or claim is None or not binding.clusters:
        return {}
    scheduling = placements.get(claim.placement).replica_scheduling
    if scheduling is None or scheduling.replica_scheduling_type != SchedulingType.DIVIDED:
        return {}
    votes = np.array([count for _, count in binding.clusters], dtype=np.int64)
    shares = division.divide(votes, total, descending=division.breaks_ties_descending(template.uid))
    return {cluster: int(share) for (cluster, _), share in zip(binding.clusters, shares, strict=True)}


def _targets(binding: Binding, declared: Declared, required: AbstractSet[str]) -> Targets:
    """Return (cluster, replicas): the assigned clusters if a policy claims the binding, and the ``required`` ones."""
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
        work = msgspec.structs.replace(work, state="suspended")
    if previous is None or previous.suspended != is_suspended:
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


def _removed(view: View, key: str, cluster: str, *, preserved: bool) -> works.WorkRemoved:
    return works.WorkRemoved(cluster=cluster, key=key, term=view.term, step=view.step, preserved=preserved)


def _sent(
    view: View, key: str, work: decisions.DispatchedWork, declared: Declared
) -> works.WorkApplied | works.WorkSuspended:
    """Return the event that sends a work to its cluster, or shows it there if it is suspended."""
    term, step = view.term, view.step
    sent = applied(key, work.cluster, declared, work, view.shard.shard, (term, step))
    if work.state == "suspended":
        return works.WorkSuspended(cluster=work.cluster, key=key, term=term, step=step, pending=sent)
    return sent


def applied(
    key: str,
    cluster: str,
    declared: Declared,
    work: decisions.DispatchedWork | Dispatched,
    shard: int,
    version: tuple[int, int],
) -> works.WorkApplied:
    """Return the event that sends a work of a binding of ``shard`` to a cluster; ``version`` is (term, step)."""
    return works.WorkApplied(
        cluster=cluster,
        key=key,
        template=declared.ref,
        shard=shard,
        offset=declared.offset,
        digest=declared.digest,
        term=version[0],
        step=version[1],
        replicas=None if work.replicas == NO_REPLICAS else work.replicas,
        overrides=work.overrides,
        labels=work.labels,
        reading=work.reading,
        overwrites=work.overwrites,
        completions=work.completions,
    )
