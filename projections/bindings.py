"""Projection of bindings: replicas, policy, clusters and status of each template.

A row holds the binding's facts; ``documents/bindings`` renders ResourceBinding and ClusterResourceBinding.
"""

from typing import Final

import msgspec
from msgspec import Struct

from engine.domain import bindings as domain
from engine.domain.workload_groups import GroupLabel
from engine.shared_values import shared
from events import decisions, enums, ids, preemption_decisions, shapes, status_values
from events.json_values import canonical_json
from events.records import Envelope
from projections.objects import Objects
from projections.placements import Placements
from projections.port import Queryable, Row, Rows
from projections.working_set import WorkingSet

SCHEMA: Final = """
CREATE TABLE bindings (
    id INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    clusters TEXT NOT NULL,
    scheduled TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX unscheduled_bindings ON bindings (scheduled) WHERE scheduled NOT IN ('', 'Success');
"""


class Status(Struct, frozen=True, array_like=True, gc=False):
    """The aggregated reports of the members; ``since_ms`` is when ``fully_applied`` last changed.

    ``observed_generation`` is the last generation of the template that the statuses of all members describe.
    """

    members: tuple[decisions.MemberStatus, ...]
    observed_generation: int
    fully_applied: bool
    since_ms: int
    fields: dict[str, int | str] = {}
    whole: bool = False
    """Whether the template's status is the whole status of its only member, or has the conditions of all members."""


class Binding(domain.Binding, kw_only=True, array_like=True):
    """The facts of a binding and its template.

    ``number`` is that of the last record that changed the rendered binding, ``template_number`` that of the last one
    that changed the rendered template. ``replicas`` is None for kinds without replicas. ``node_claim`` is JSON text, or
    empty. ``condition_since_ms`` is when the condition Scheduled last changed between success and failure,
    ``observed_generation`` the last generation that was scheduled successfully. ``template_version`` is the template's
    resourceVersion when the binding was last declared or claimed. ``dependencies`` are the objects that the template
    refers to and that were distributed with it; ``required`` has the bindings that depend on the template, by key, with
    the clusters where they need it. ``groups`` are those of the template when the binding was last declared or claimed.
    """

    template: shapes.WorkloadRef
    template_uid: str
    uid: str
    created_ms: int
    number: int = 0
    template_number: int = 0
    replicas: int | None = None
    requests: dict[str, str] | None = None
    node_claim: bytes = b""
    triggered_ms: int = 0
    scheduled_ms: int = 0
    condition_since_ms: int = 0
    observed_generation: int = 0
    template_version: int = 0
    status: Status | None = None
    dependencies: tuple[shapes.WorkloadRef, ...] = ()
    required: dict[str, decisions.RequiredBy] = {}
    groups: tuple[GroupLabel, ...] = ()

    @property
    def scheduled_generation(self) -> int:
        """The generation up to which scheduling has succeeded; 0 if it never did.

        A step schedules each binding that it changes, unless the binding's scheduling is suspended. It records no
        decision if the result stays the same, so after a success all later generations are scheduled too.
        """
        is_level = self.condition == domain.SUCCESS and not self.suspension.scheduling
        return self.generation if is_level else self.observed_generation

    @property
    def placement(self) -> str:
        """Digest of the placement in the binding's spec; empty if there is none."""
        claim = self.last_claim
        return claim.placement if claim else ""

    @property
    def conflict_resolution(self) -> str:
        """The treatment of an object that exists in a member already: ``Overwrite`` or ``Abort``.

        The policy determines it; without a policy, the bindings that depend on this template do.
        """
        claim = self.last_claim
        if claim is not None:
            return claim.conflict_resolution
        overwrites = any(need.overwrites for need in self.required.values())
        return enums.ConflictResolution.OVERWRITE if overwrites else enums.ConflictResolution.ABORT

    @property
    def preserves(self) -> bool:
        """Whether members keep their objects when the template is deleted.

        The policy determines it; without a policy, the bindings that depend on this template do.
        """
        claim = self.last_claim
        if claim is not None:
            return bool(claim.preserve_on_deletion)
        return any(need.preserves for need in self.required.values())


_OF_TEMPLATE: Final = (
    decisions.BindingClaimed,
    decisions.BindingReleased,
    decisions.StatusAggregated,
    decisions.TemplateMarked,
)
"""Decisions that change the rendered template as well as the binding."""

MARKING: Final = (decisions.TemplateMarked, decisions.BindingReleased)
"""Decisions that concern the rendered template even if it has no binding."""

_HIDDEN: Final = (
    decisions.BindingDispatched,
    preemption_decisions.CapacityWanted,
    preemption_decisions.PreemptionDecided,
)
"""Decisions that change nothing in the rendered binding."""

_AFTER_SCHEDULING: Final = (
    decisions.ScheduleDecided,
    decisions.BindingDispatched,
    decisions.StatusAggregated,
)
"""Decisions that follow the scheduling of a binding in a step: a success then covers its current generation."""

_STORED: Final = "SELECT body FROM bindings JOIN keys USING (id) WHERE key = ?"
_BODIES: Final = """
SELECT key, body FROM keys JOIN bindings USING (id) WHERE key IN (SELECT value FROM json_each(?)) ORDER BY key
"""
decode: Final = msgspec.json.Decoder(Binding).decode


def stored(rows: Queryable, key: str) -> Binding | None:
    """Return the binding with a key; None if there is none."""
    matches = rows.select(_STORED, (key,))
    return decode(matches[0][0]) if matches else None


def dependents(rows: Queryable, binding: Binding) -> dict[str, Binding]:
    """Return the bindings that depend on a binding's template, by their keys."""
    if not binding.required:
        return {}
    selected = rows.select(_BODIES, (canonical_json(list(binding.required)).decode(),))
    return {key: decode(body) for key, body in selected}


class Bindings(WorkingSet[int, Binding]):
    """Folds decisions about bindings."""

    def __init__(self, rows: Rows, placements: Placements) -> None:
        self._placements = placements
        super().__init__(rows, "bindings", decode, _columns)

    def take(self, key_id: int, number: int, at_ms: int, head: Envelope, data: shapes.Event) -> bool:
        """Fold a decision of a valid step; return False if its binding does not exist."""
        binding = self.get(key_id)
        rendered = None if binding is None else _rendered_by(binding)
        if binding is None:
            if not isinstance(data, decisions.BindingDeclared):
                return False
            binding = _new_binding(at_ms, head, data)
        elif isinstance(data, decisions.BindingWithdrawn):
            self.put(key_id, None)
            return True
        if isinstance(data, decisions.BindingClaimed):
            self._placements.put(data.placement)
        had_succeeded = binding.condition == domain.SUCCESS if binding.condition else None
        domain.apply(binding, data)
        match data:
            case decisions.ScheduleDecided() | decisions.ScheduleFailed():
                _schedule(binding, at_ms, data, had_succeeded=had_succeeded)
            case decisions.StatusAggregated():
                _aggregate(binding, at_ms, data)
            case _:
                _update(binding, data)
        if (
            isinstance(data, _AFTER_SCHEDULING)
            and binding.observed_generation != binding.scheduled_generation
        ):
            # Store the generation even if the decision is one of `_HIDDEN`: a restart must not lose it.
            binding.observed_generation = binding.scheduled_generation
            self.put(key_id, binding)
        if not isinstance(data, _HIDDEN):
            binding.number = number
            if isinstance(data, _OF_TEMPLATE) or rendered not in (None, _rendered_by(binding)):
                binding.template_number = number
            if isinstance(data, decisions.BindingClaimed):
                # A claim changes the template's labels and annotations, and so its resourceVersion.
                binding.template_version = number
            self.put(key_id, binding)
        return True

    def touch(self, key_id: int, dependent: str, number: int) -> bool:
        """Set ``Binding.number`` if ``dependent`` is in ``Binding.required``; return whether it was set."""
        binding = self.get(key_id)
        if binding is None or dependent not in binding.required:
            return False
        binding.number = number
        self.put(key_id, binding)
        return True

    def follow_template(
        self, key_id: int, data: decisions.BindingDeclared | decisions.BindingClaimed, objects: Objects
    ) -> None:
        """After a declaration or a claim, store the template's version and groups, which the rendered binding shows."""
        binding = self.get(key_id)
        if binding is None:
            return
        affinity = self._placements.workload_affinity(binding.placement)
        groups: tuple[GroupLabel, ...] = ()
        # Do not read labels for placements without affinity, which most are.
        if affinity is not None:
            groups = tuple(affinity.groups(binding.template.namespace, objects.labels(key_id)))
        if isinstance(data, decisions.BindingDeclared):
            binding.template_version = objects.number(key_id)
        elif groups == binding.groups:
            return
        binding.groups = groups
        self.put(key_id, binding)


def _new_binding(at_ms: int, head: Envelope, data: decisions.BindingDeclared) -> Binding:
    """Return the binding of a template that had none."""
    uid = ids.object_uid(head.source, head.id, data.key)
    return Binding(template=data.template, template_uid=data.uid, uid=uid, created_ms=at_ms)


def _columns(binding: Binding) -> Row:
    """Return the values of the searchable columns; also replace parts of the binding by shared equal values."""
    binding.claim = shared(binding.claim)
    binding.clusters = shared(binding.clusters)
    binding.applied = shared(binding.applied)
    return binding.number, searchable_clusters(binding), binding.condition


def _rendered_by(binding: Binding) -> tuple[str, bool]:
    """Return the declared facts that the rendered template depends on: its uid, and whether it has replicas.

    A template whose uid differs from the declared one is rendered without its binding.
    """
    return binding.template_uid, binding.replicas is not None


def _update(binding: Binding, data: shapes.Event) -> None:
    """Apply a decision to the fields that the projection has in addition to those of ``engine.domain.bindings``."""
    match data:
        case decisions.BindingDeclared():
            binding.template = data.template
            binding.template_uid = data.uid
            binding.replicas = data.replicas
            binding.requests = data.requests
            binding.node_claim = msgspec.json.encode(data.node_claim) if data.node_claim else b""
        case decisions.RescheduleTriggered():
            binding.triggered_ms = max(binding.triggered_ms, data.at_ms)
        case decisions.DependenciesDistributed():
            binding.dependencies = data.dependencies
        case decisions.BindingRequired():
            data.fold(binding.required)
        case _:
            return


def _schedule(
    binding: Binding,
    at_ms: int,
    data: decisions.ScheduleDecided | decisions.ScheduleFailed,
    *,
    had_succeeded: bool | None,
) -> None:
    if had_succeeded != (binding.condition == domain.SUCCESS):
        binding.condition_since_ms = at_ms
    if isinstance(data, decisions.ScheduleDecided):
        binding.scheduled_ms = at_ms


def searchable_clusters(binding: Binding) -> str:
    """Return the binding's clusters as searchable text: ``,member1,member2,``.

    Clusters where the template runs only because other bindings need it come last.
    """
    assigned = [name for name, _ in binding.clusters]
    others = {name for need in binding.required.values() for name in need.clusters}.difference(assigned)
    return "".join((",", *(f"{name}," for name in assigned), *(f"{name}," for name in sorted(others))))


def _aggregate(binding: Binding, at_ms: int, data: decisions.StatusAggregated) -> None:
    previous = binding.status
    since_ms = (
        at_ms if previous is None or previous.fully_applied != data.fully_applied else previous.since_ms
    )
    observed = data.observed_generation
    if any(_is_behind(member, binding.template, observed) for member in data.members):
        observed = previous.observed_generation if previous else 0
    binding.status = Status(
        data.members, observed, data.fully_applied, since_ms, dict(data.fields), data.whole
    )


def _is_behind(member: decisions.MemberStatus, ref: shapes.WorkloadRef, generation: int) -> bool:
    """Whether a member's status does not describe this generation of the template yet.

    A member that reports no generation is up to date once it has applied the object.
    """
    if (ref.api_version, ref.kind) not in status_values.GENERATION_KINDS:
        return False
    described = member.template_generation, member.observed_generation
    return not member.applied or (member.generation > 0 and described != (generation, member.generation))
