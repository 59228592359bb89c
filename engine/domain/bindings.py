"""A binding: the claim of a policy on a template, its clusters, its evictions and the last scheduling result.

``apply`` is the only fold of these facts; deciders and projections add their own facts to the struct.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from events import decisions, shapes

SUCCESS: Final = "Success"
"""Reason of the condition Scheduled of a scheduled binding."""

TEMPLATE_DELETED: Final = "TemplateDeleted"
"""Reason to withdraw the binding of a template that was deleted."""

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""The ``schedulerName`` of policies that set none."""

REBALLAST_SCHEDULER: Final = "reballast"
SCHEDULERS: Final = (DEFAULT_SCHEDULER, REBALLAST_SCHEDULER)
"""Values of ``schedulerName`` that the engine serves; it does not schedule bindings with other values."""

_PLACEMENT_DIGEST_BYTES: Final = 8

Targets = tuple[tuple[str, int], ...]
"""Pairs of cluster and replicas."""


def targets_text(clusters: Mapping[str, object]) -> str:
    """Return clusters with their replicas in one line, sorted by name; ``nowhere`` if there are none."""
    return ", ".join(f"{name}: {count}" for name, count in sorted(clusters.items())) or "nowhere"


class Claim(Struct, frozen=True, array_like=True, gc=False):
    """The policy that claims a template, its version and its settings; the fields are named as in ``BindingClaimed``.

    ``placement`` is only a digest: the placement itself is stored once for all bindings of the policy.
    ``scheduler`` is empty for the default scheduler.
    """

    policy: shapes.PolicyRef
    permanent_id: str
    version: int
    placement: str
    suspended: bool
    suspended_on: tuple[str, ...]
    purge_mode: str
    conflict_resolution: str
    preserve_on_deletion: bool | None
    deletes_last_copy: bool
    failover: decisions.ApplicationFailover | None = None
    propagate_deps: bool = False
    preserved: tuple[shapes.StateRule, ...] = ()
    schedule_priority: decisions.SchedulePriority | None = None
    scheduler: str = ""
    resumed: bool = False

    @property
    def scheduler_name(self) -> str:
        """The scheduler that the policy names, or the default one."""
        return self.scheduler or DEFAULT_SCHEDULER

    @property
    def is_scheduled_here(self) -> bool:
        """Whether the engine schedules the workload, not another scheduler."""
        return not other_scheduler_reason(self.scheduler)


class Mark(Struct, frozen=True, array_like=True, gc=False):
    """A lazy policy that has set its labels and annotations on a template, but has not claimed the template yet."""

    policy: shapes.PolicyRef
    permanent_id: str


class Suspension(Struct, frozen=True, array_like=True, gc=False):
    """Parts of a binding that a client suspended: its scheduling, the dispatching of its works to clusters.

    The binding's policy may suspend dispatching too.
    """

    scheduling: bool = False
    dispatching: bool = False


NOT_SUSPENDED: Final = Suspension()


class Binding(Struct):
    """State of a binding that follows from decisions about it.

    - ``generation``: number of changes of the binding's spec.
    - ``released``: the last claim, kept while no policy claims the template.
    - ``marked``: the policy with lazy activation that claims the template at the template's next write. Until then
      no other policy claims the template, unless it preempts this one.
    - ``tasks``: evictions that have not ended; their ``suppress_deletion`` is False once a user allowed the deletion.
    - ``applied``: digest of the placement that the last decision used.
    - ``condition``, ``message``: SUCCESS, or why the binding could not be scheduled; empty before the first
      decision.
    - ``rank``: the resolved scheduling priority; None if no policy has set one.
    - ``suspension``: what a client suspended.
    """

    generation: int = 0
    claim: Claim | None = None
    released: Claim | None = None
    marked: Mark | None = None
    rank: decisions.PriorityResolved | None = None
    clusters: Targets = ()
    tasks: tuple[decisions.EvictionStarted, ...] = ()
    applied: str = ""
    affinity: str = ""
    condition: str = ""
    message: str = ""
    suspension: Suspension = NOT_SUSPENDED

    def is_suspended_in(self, cluster: str) -> bool:
        """Whether dispatching to a cluster is suspended."""
        claim = self.claim
        return self.suspension.dispatching or (
            claim is not None and (claim.suspended or cluster in claim.suspended_on)
        )

    @property
    def is_suspended(self) -> bool:
        """Whether dispatching is suspended for at least one cluster."""
        claim = self.claim
        return self.suspension.dispatching or (
            claim is not None and (claim.suspended or bool(claim.suspended_on))
        )

    @property
    def last_claim(self) -> Claim | None:
        """The current claim; if no policy claims the template any longer, the last one, which the spec still shows."""
        return self.claim or self.released


_UNBOUND: Final = Binding()


def apply(binding: Binding, data: shapes.Event) -> None:
    """Apply a decision about the binding; other events change nothing."""
    match data:
        case decisions.ScheduleDecided():
            clusters = tuple((target.name, target.replicas) for target in data.clusters)
            _schedule(binding, clusters)
            binding.affinity = data.affinity
            binding.condition, binding.message = SUCCESS, ""
        case decisions.ScheduleFailed():
            if data.emptied:
                _schedule(binding, ())
            binding.condition, binding.message = data.reason, data.message
        case decisions.EvictionStarted():
            binding.generation += 1
            binding.clusters, binding.tasks = evict(binding.clusters, binding.tasks, data)
        case decisions.EvictionFinished():
            binding.tasks = tuple(task for task in binding.tasks if task.cluster != data.cluster)
        case decisions.BindingClaimed():
            binding.generation += 1
            binding.claim, binding.released, binding.marked = _claim(data), None, None
        case decisions.BindingReleased():
            # Without a claim only the mark ends, which does not change the spec; there may even be no binding.
            binding.generation += binding.claim is not None
            binding.claim, binding.released, binding.marked = None, binding.claim, None
        case decisions.TemplateMarked():
            is_waiting = data.preempted is not None or binding.claim is None
            binding.marked = Mark(data.policy, data.permanent_id) if is_waiting else None
        case decisions.PriorityResolved():
            binding.generation += 1
            binding.rank = None if data.priority is None else data
        case (
            decisions.BindingDeclared()
            | decisions.RescheduleTriggered()
            | decisions.BindingRequired()
            | decisions.BindingSuspended()
        ):
            binding.generation += 1
            binding.suspension = _suspension(binding.suspension, data)
        case decisions.BindingWithdrawn():
            _reset(binding)
        case _:
            return


def other_scheduler_reason(scheduler: str) -> str:
    """Return why the engine does not schedule bindings whose policy names this scheduler; empty if it does."""
    if not scheduler or scheduler in SCHEDULERS:
        return ""
    return (
        f"the policy names the scheduler {scheduler}; this control plane schedules for "
        f"{' and '.join(SCHEDULERS)} only, other workloads stay where they are"
    )


def evict(
    clusters: Targets, tasks: tuple[decisions.EvictionStarted, ...], task: decisions.EvictionStarted
) -> tuple[Targets, tuple[decisions.EvictionStarted, ...]]:
    """Return a binding's clusters and tasks after an eviction from one cluster.

    Nothing changes if the binding is not in the cluster, so a repeated eviction has no effect. A cluster with an
    eviction task gets no second task.
    """
    remaining = tuple(target for target in clusters if target[0] != task.cluster)
    if len(remaining) == len(clusters) or any(other.cluster == task.cluster for other in tasks):
        return remaining, tasks
    return remaining, (*tasks, task)


def placement_digest(placement: msgspec.Raw | bytes) -> str:
    """Return the digest of a placement, which a ``Claim`` contains instead of the placement."""
    return hashlib.blake2b(placement, digest_size=_PLACEMENT_DIGEST_BYTES).hexdigest()


def _reset(binding: Binding) -> None:
    """Reset a withdrawn binding to its initial state, but keep ``marked`` if no policy claims the template."""
    marked = None if binding.claim is not None else binding.marked
    for name in Binding.__struct_fields__:
        setattr(binding, name, getattr(_UNBOUND, name))
    binding.marked = marked


def _schedule(binding: Binding, clusters: Targets) -> None:
    binding.generation += clusters != binding.clusters
    binding.clusters = clusters
    if binding.claim is not None:
        binding.applied = binding.claim.placement


def _claim(data: decisions.BindingClaimed) -> Claim:
    fields = msgspec.structs.asdict(data)
    fields["placement"] = placement_digest(data.placement)
    return Claim(**{name: fields[name] for name in Claim.__struct_fields__})


def _suspension(previous: Suspension, data: shapes.Event) -> Suspension:
    if not isinstance(data, decisions.BindingSuspended):
        return previous
    return Suspension(data.scheduling, data.dispatching)
