"""Projection of bindings: replicas, policy, clusters and status of each template.

A row holds the binding's facts; ``documents/bindings`` renders ResourceBinding and ClusterResourceBinding. The
generation counts changes of the binding's spec. The shard's owner counts it in ``engine/deciders/apply_decisions.py``;
both must stay equal.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from events import decisions, ids, shapes
from events.envelope import Envelope
from projections.placements import Placements
from projections.port import Row, Rows
from projections.working_set import WorkingSet

SCHEMA: Final = """
CREATE TABLE bindings (
    id INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    clusters TEXT NOT NULL,
    scheduled TEXT NOT NULL,
    body BLOB NOT NULL
);
"""
SUCCESS: Final = "Success"
_SCHEDULED: Final = "Binding has been scheduled successfully."


class Claim(Struct, frozen=True, array_like=True, gc=False):
    """The policy that places the template; ``placement`` is a digest in the table of placements."""

    policy: shapes.PolicyRef
    permanent_id: str
    placement: str
    conflict_resolution: str
    suspended: bool = False
    suspended_on: tuple[str, ...] = ()
    preserve_on_deletion: bool = False
    failover: decisions.ApplicationFailover | None = None
    propagate_deps: bool = False
    preserved: tuple[shapes.StateRule, ...] = ()
    purge_mode: str = ""


class Task(Struct, frozen=True, array_like=True, gc=False):
    """A graceful eviction in progress."""

    cluster: str
    replicas: int
    reason: str
    producer: str
    purge_mode: str
    created_ms: int
    grace_period_seconds: int | None = None
    suppress_deletion: bool | None = None
    labels: dict[str, str] = {}
    clusters_before: tuple[str, ...] = ()
    message: str = ""


class Scheduled(Struct, frozen=True, array_like=True, gc=False):
    """The condition ``Scheduled``; ``reason`` is SUCCESS or the reason of the failure.

    ``since_ms`` is when it last changed between success and failure, ``observed`` the generation that it
    describes.
    """

    reason: str
    message: str
    since_ms: int
    observed: int


class Status(Struct, frozen=True, array_like=True, gc=False):
    """The aggregated reports of the members; ``since_ms`` is when ``fully_applied`` last changed."""

    members: tuple[decisions.MemberStatus, ...]
    observed_generation: int
    fully_applied: bool
    since_ms: int
    fields: dict[str, int | str] = {}


class Binding(Struct, array_like=True):
    """The facts of a binding.

    ``number`` is that of the last record that changed the rendered binding, ``template_number`` that of the
    last one that changed the rendered template. ``replicas`` is None for kinds without replicas. ``applied``
    is the digest of the placement used by the last decision. ``dependencies`` are the objects that the
    template refers to and that were distributed with it; ``required`` are the clusters in which other
    bindings need the template, by their keys. ``released`` is the last claim while no policy claims the
    binding: its spec keeps showing that claim.
    """

    template: shapes.WorkloadRef
    template_uid: str
    uid: str
    created_ms: int
    generation: int = 0
    number: int = 0
    template_number: int = 0
    replicas: int | None = None
    requests: dict[str, str] | None = None
    claim: Claim | None = None
    clusters: tuple[shapes.TargetCluster, ...] = ()
    applied: str = ""
    affinity: str = ""
    tasks: tuple[Task, ...] = ()
    triggered_ms: int = 0
    scheduled_ms: int = 0
    scheduled: Scheduled | None = None
    status: Status | None = None
    dependencies: tuple[shapes.WorkloadRef, ...] = ()
    required: dict[str, tuple[str, ...]] = {}
    priority: int | None = None
    preemption_policy: str = ""
    released: Claim | None = None

    @property
    def placement(self) -> str:
        """Digest of the placement in the binding's spec; empty if there is none."""
        claim = self.claim or self.released
        return claim.placement if claim else ""


_encode = msgspec.json.Encoder(order="deterministic").encode
decode: Final = msgspec.json.Decoder(Binding).decode


class Bindings:
    """Folds decisions about bindings."""

    def __init__(self, rows: Rows, placements: Placements) -> None:
        self._rows = rows
        self._placements = placements
        self._documents: WorkingSet[Binding] = WorkingSet(self._load)

    def get(self, key_id: int) -> Binding | None:
        """Return the current binding; callers must not modify it."""
        return self._documents.get(key_id)

    def take(self, key_id: int, number: int, at_ms: int, head: Envelope, data: shapes.Event) -> bool:
        """Fold a counted decision; return False if its binding does not exist."""
        binding = self._documents.get(key_id)
        match data:
            case decisions.BindingDeclared():
                binding = self._declare(binding, at_ms, head, data)
            case _ if binding is None:
                return False
            case decisions.BindingWithdrawn():
                self._documents.put(key_id, None)
                return True
            case decisions.BindingClaimed():
                self._claim(binding, data)
                binding.template_number = number
            case decisions.BindingReleased():
                binding.generation += 1
                binding.released, binding.claim = binding.claim, None
                binding.template_number = number
            case decisions.ScheduleDecided() | decisions.ScheduleFailed() | decisions.PriorityResolved():
                _schedule(binding, at_ms, data)
            case decisions.RescheduleTriggered(at_ms=triggered_ms):
                binding.generation += 1
                binding.triggered_ms = max(binding.triggered_ms, triggered_ms)
            case decisions.EvictionStarted() | decisions.EvictionFinished():
                _evict(binding, data)
            case decisions.DependenciesDistributed(dependencies=dependencies):
                binding.dependencies = dependencies
            case decisions.BindingRequired():
                binding.generation += 1
                data.fold(binding.required)
            case decisions.StatusAggregated():
                _show(binding, at_ms, data)
                binding.template_number = number
            case _:
                return True
        binding.number = number
        self._documents.put(key_id, binding)
        return True

    def flush(self, rows: Rows) -> None:
        deleted: list[Row] = []
        stored: list[Row] = []
        for key_id, binding in self._documents.changed():
            if binding is None:
                deleted.append((key_id,))
            else:
                stored.append(
                    (key_id, binding.number, on(binding), _condition_reason(binding), _encode(binding))
                )
        rows.write("DELETE FROM bindings WHERE id = ?", deleted)
        rows.write("INSERT OR REPLACE INTO bindings VALUES (?, ?, ?, ?, ?)", stored)

    def _load(self, key_id: int) -> Binding | None:
        rows = self._rows.select("SELECT body FROM bindings WHERE id = ?", (key_id,))
        return decode(rows[0][0]) if rows else None

    @staticmethod
    def _declare(
        binding: Binding | None, at_ms: int, head: Envelope, data: decisions.BindingDeclared
    ) -> Binding:
        if binding is None:
            uid = ids.object_uid(head.source, head.id, data.key)
            binding = Binding(data.template, data.uid, uid, at_ms)
        binding.generation += 1
        binding.template = data.template
        binding.template_uid = data.uid
        binding.replicas = data.replicas
        binding.requests = data.requests
        return binding

    def _claim(self, binding: Binding, data: decisions.BindingClaimed) -> None:
        binding.generation += 1
        binding.released = None
        binding.claim = Claim(
            data.policy,
            data.permanent_id,
            self._placements.put(data.placement),
            data.conflict_resolution,
            data.suspended,
            data.suspended_on,
            data.preserve_on_deletion,
            data.failover,
            data.propagate_deps,
            data.preserved,
            data.purge_mode,
        )


def on(binding: Binding) -> str:
    """Return the binding's clusters as searchable text: ``,member1,member2,``.

    Clusters in which only other bindings need it come last.
    """
    assigned = [target.name for target in binding.clusters]
    others = {name for clusters in binding.required.values() for name in clusters}.difference(assigned)
    return "".join((",", *(f"{name}," for name in assigned), *(f"{name}," for name in sorted(others))))


def _condition_reason(binding: Binding) -> str:
    return binding.scheduled.reason if binding.scheduled else ""


def _schedule(
    binding: Binding,
    at_ms: int,
    data: decisions.ScheduleDecided | decisions.ScheduleFailed | decisions.PriorityResolved,
) -> None:
    applied = binding.claim.placement if binding.claim else binding.applied
    match data:
        case decisions.PriorityResolved():
            binding.generation += 1
            binding.priority, binding.preemption_policy = data.priority, data.preemption_policy
        case decisions.ScheduleDecided():
            binding.generation += data.clusters != binding.clusters
            binding.clusters = data.clusters
            binding.applied = applied
            binding.affinity = data.affinity
            binding.scheduled_ms = at_ms
            _condition(binding, at_ms, SUCCESS, _SCHEDULED)
        case decisions.ScheduleFailed():
            if data.emptied:
                binding.generation += bool(binding.clusters)
                binding.clusters = ()
                binding.applied = applied
            _condition(binding, at_ms, data.reason, data.message)


def _condition(binding: Binding, at_ms: int, reason: str, message: str) -> None:
    previous = binding.scheduled
    is_same_outcome = previous is not None and (previous.reason == SUCCESS) == (reason == SUCCESS)
    since_ms = previous.since_ms if previous is not None and is_same_outcome else at_ms
    binding.scheduled = Scheduled(reason, message, since_ms, binding.generation)


def _evict(binding: Binding, data: decisions.EvictionStarted | decisions.EvictionFinished) -> None:
    match data:
        case decisions.EvictionStarted():
            binding.generation += 1
            binding.clusters = tuple(target for target in binding.clusters if target.name != data.cluster)
            if all(task.cluster != data.cluster for task in binding.tasks):
                task = Task(
                    data.cluster,
                    data.replicas,
                    data.reason,
                    data.producer,
                    data.purge_mode,
                    data.created_ms,
                    data.grace_period_seconds,
                    data.suppress_deletion,
                    data.labels,
                    data.clusters_before,
                    _message(data),
                )
                binding.tasks = (*binding.tasks, task)
        case decisions.EvictionFinished():
            binding.tasks = tuple(task for task in binding.tasks if task.cluster != data.cluster)


def _message(data: decisions.EvictionStarted) -> str:
    """The preempting binding and the state that was not preserved, as a message."""
    reasons = data.not_preserved
    preemption = (f"preempted by {data.by}",) if data.by else ()
    return "; ".join((*preemption, *_not_preserved(reasons)))


def _not_preserved(reasons: dict[str, str]) -> Iterator[str]:
    return (f"{label} is not preserved: {reasons[label]}" for label in sorted(reasons))


def _show(binding: Binding, at_ms: int, data: decisions.StatusAggregated) -> None:
    previous = binding.status
    since_ms = (
        at_ms if previous is None or previous.fully_applied != data.fully_applied else previous.since_ms
    )
    binding.status = Status(
        data.members, data.observed_generation, data.fully_applied, since_ms, dict(data.fields)
    )
