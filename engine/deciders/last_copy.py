"""Protect the last running copy of a workload: a graceful eviction without a replacement does not delete it.

Karmada deletes an evicted workload when the grace period is over, whether or not a replacement runs. A
workload that fits in no other cluster, or that no policy claims any longer, is then deleted from a cluster
that may have recovered long ago. Here such an eviction does not end with the grace period, but when a
replacement runs, when the cluster tolerates the workload again (Recovered: the binding gets its assignment back),
or when the cluster has left. The annotation ``reballast.io/delete-last-copy: "true"`` of a policy restores
Karmada's behaviour for the templates that it claims.
"""

from collections.abc import Sequence
from typing import Final

from engine.deciders import eviction_rules
from engine.deciders.facts import Facts
from engine.deciders.placement_cache import Placements
from engine.deciders.state import Binding
from engine.deciders.step_outputs import Outputs, View
from engine.domain.bindings import SUCCESS
from events import decisions, shapes, vocabulary

UNCLAIMED: Final = "Unclaimed"
"""Reason of the condition Scheduled of a binding that no policy claims and that is assigned to no cluster."""


def clusters(binding: Binding) -> frozenset[str]:
    """Return the clusters whose graceful eviction would delete the last running copy.

    If the binding is assigned to no cluster, a copy without any report counts as running.
    """
    if binding.deletes_last_copy or any(_runs(binding, name) for name, _ in binding.clusters):
        return frozenset()
    return frozenset(
        task.cluster
        for task in binding.tasks
        if task.purge_mode != vocabulary.PURGE_DIRECTLY
        and not task.held
        and task.suppress_deletion is None
        and (_runs(binding, task.cluster) or (not binding.clusters and task.cluster not in binding.reports))
    )


def selecting_groups(
    binding: Binding, names: Sequence[str], facts: Facts, placements: Placements
) -> tuple[str, ...]:
    """Return the names of the claiming policy's affinity groups that select any of the clusters ``names``, in order.

    If the policy has no groups, the result is the name of the binding's last group if the policy selects any of the
    clusters, otherwise empty. If no policy claims the binding, the result is the name of its last group.
    """
    if binding.claim is None:
        return (binding.affinity,)
    placement, matches = placements.get(binding.claim.placement), facts.fleet.matches
    if placement.cluster_affinity is not None or not placement.cluster_affinities:
        is_selected = any(matches(placement.cluster_affinity, name) for name in names)
        return (binding.affinity,) if is_selected else ()
    return tuple(
        term.affinity_name
        for term in placement.cluster_affinities
        if any(matches(affinity, name) for affinity in (term, *term.overflow_affinities) for name in names)
    )


def restore(
    binding: Binding,
    ended: Sequence[eviction_rules.Ended],
    view: View,
) -> Outputs[bool]:
    """Assign a binding to its recovered clusters again; return whether there are any.

    The scheduler could not do this if the running copies use up the free capacity or the quotas. The scheduling pass in
    the same step begins with the affinity group of the binding, and removes copies in clusters that this group does not
    select. So the binding keeps its group only if the group selects a recovered cluster; otherwise it gets the policy's
    first group that selects one. Recovered clusters that this group does not select stay unassigned.
    """
    recovered = [
        ended_task.task for ended_task in ended if ended_task.reason == eviction_rules.EndReason.RECOVERED
    ]
    recovered.sort(key=lambda task: task.cluster)
    if recovered:

        def groups_of(tasks: Sequence[decisions.EvictionStarted]) -> tuple[str, ...]:
            names = [task.cluster for task in tasks]
            return selecting_groups(binding, names, view.facts, view.placements)

        groups = groups_of(recovered)
        affinity = binding.affinity if binding.affinity in groups else groups[0]
        yield decisions.ScheduleDecided(
            key=binding.key,
            generation=binding.generation,
            trigger=eviction_rules.EndReason.RECOVERED,
            mode="Steady",
            clusters=tuple(
                shapes.TargetCluster(name=task.cluster, replicas=task.replicas)
                for task in recovered
                if affinity in groups_of([task])
            ),
            affinity=affinity,
        )
    return bool(recovered)


def decide_unclaimed(binding: Binding) -> Outputs[None]:
    """Record that an unclaimed binding is assigned to no cluster. The scheduler does this for claimed ones."""
    if binding.clusters or binding.condition not in {SUCCESS, UNCLAIMED}:
        return
    message = _message(binding)
    if (binding.condition, binding.message) == (UNCLAIMED, message):
        return
    yield decisions.ScheduleFailed(
        key=binding.key,
        generation=binding.generation,
        trigger="Evicted",
        mode="Steady",
        reason=UNCLAIMED,
        message=message,
    )


def _runs(binding: Binding, cluster: str) -> bool:
    """Whether the cluster's newest report shows a running copy; kinds without replicas report only their health."""
    report = binding.reports.get(cluster)
    return report is not None and (report.ready > 0 or report.healthy)


def _message(binding: Binding) -> str:
    kept = ", ".join(
        sorted(task.cluster for task in binding.tasks if task.purge_mode != vocabulary.PURGE_DIRECTLY)
    )
    remedy = "create a policy that selects the workload"
    if kept:
        return f"evicted from {kept} without a replacement, since no policy claims the workload; {remedy}"
    return f"the workload runs in no cluster: it was evicted, and no policy claims it; {remedy}"
