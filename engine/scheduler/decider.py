"""Decides on the bindings that name this scheduler. Pure: a fold over observed objects and over its own decisions.

A binding is due when it is first seen or its generation changes, and when a cluster that its placement selects changes
its labels or spec or begins to be deleted, as in Karmada's scheduler. While a decision is being written, no other is
made on its binding.

A decision applies to the binding's workload groups as soon as it is made: the other bindings of a group are often
decided before it is written and observed. A decision that the API has refused does not apply until it is tried again.
"""

import heapq
import itertools
from collections.abc import Iterator
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from engine.domain import marks
from engine.objects import clusters as cluster_objects
from engine.objects import placements
from engine.observer import group_index
from engine.observer.observed_bindings import ObservedBinding, read_binding
from engine.placement import decisions, failures, fleet, parsing, schedule, triggers
from engine.scheduler import writes
from events import observations, shapes, times, vocabulary

Key: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name of a binding."""

RETRY_MS: Final = 1_000
RETRY_MS_MAX: Final = 10_000
UNSCHEDULABLE_MS: Final = 300_000
"""Milliseconds until a binding without sufficient capacity is tried again if nothing changes."""

_MARKS: Final = (*marks.POLICY_IDS.values(), "binding.karmada.io/managed-by")
"""Labels that show that a policy created a binding; such a binding has one of them."""


class _Placed(Struct):
    """A placement, and the bindings that have it."""

    placement: placements.Placement
    keys: set[Key]


class Decider:
    """The bindings that name the scheduler ``name``, all clusters and workload groups, and which bindings are due."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._fleet = fleet.Fleet()
        # Contains the bindings of all schedulers.
        self._groups = group_index.GroupIndex()
        self._bindings: dict[Key, ObservedBinding] = {}
        self._by_placement: dict[bytes, _Placed] = {}
        self._placements: dict[Key, bytes] = {}
        self._pending: dict[Key, observations.DecisionMade] = {}
        # Bindings whose pending decisions the API has refused; these decisions do not apply to groups.
        self._refused: set[Key] = set()
        self._due: dict[Key, None] = {}
        # Bindings that became due while their decisions were being written.
        self._due_after_write: set[Key] = set()
        self._retries: list[tuple[int, Key]] = []
        # By binding: its failures in a row, and when its retry is due. Other retries in the heap are
        # outdated.
        self._failures: dict[Key, tuple[int, int]] = {}

    def binding(self, key: Key) -> ObservedBinding | None:
        """The newest observed version of a binding that this scheduler schedules; None for any other binding."""
        return self._bindings.get(key)

    def pending(self, key: Key) -> observations.DecisionMade | None:
        """The decision on a binding that its observed version does not show yet; None if there is none."""
        return self._pending.get(key)

    def all_pending(self) -> tuple[Key, ...]:
        """The bindings with decisions that their observed versions do not show yet."""
        return tuple(self._pending)

    def refuse(self, key: Key) -> None:
        """Stop applying the pending decision on a binding to its workload groups, because the API refused the write."""
        if key in self._pending:
            self._refused.add(key)
            self._update_groups(key)

    def retry(self, key: Key) -> None:
        """Apply a refused decision to its binding's workload groups again, before the write is tried again.

        If the groups no longer permit the decision, drop it; the binding is then due again.
        """
        if key not in self._refused:
            return
        self._refused.discard(key)
        binding, decision = self._bindings[key], self._pending[key]
        restrictions = self._groups.restrictions(binding)
        if decision.places and not restrictions.permit(decision.clusters.keys() - binding.placed.keys()):
            del self._pending[key]
            self._due_after_write.discard(key)
            self._due[key] = None
        self._update_groups(key)

    def begin(self) -> None:
        """Make all bindings due, as a scheduler does when it starts.

        The log does not say which pending decisions the API has refused, so all of them are applied to their groups
        again, one by one.
        """
        for key in self._pending:
            self.refuse(key)
        for key in tuple(self._pending):
            self.retry(key)
        self._due.update(dict.fromkeys(self._bindings))

    def take(self, data: shapes.Event) -> None:
        """Fold an event of the topic ``observations``.

        Raises `msgspec.MsgspecError`, `quantity.QuantityError` or `fleet.FleetFullError` for an object that cannot be
        read; it then has no effect.
        """
        match data:
            case observations.ObjectChange(group=group) if group:
                # a kind of another API group that has the name of a Karmada kind
                pass
            case observations.ObjectObserved(kind=kind) if kind == observations.CLUSTER:
                self._take_cluster(parsing.read_cluster(data.manifest))
            case observations.ObjectObserved(kind=kind) if kind in vocabulary.BINDING_KINDS:
                key = (kind, data.namespace, data.name)
                self._take_binding(key, read_binding(data.manifest), is_listed=data.skipping)
            case observations.ObjectVanished(kind=kind) if kind == observations.CLUSTER:
                self._fleet.remove(data.name)
            case observations.ObjectVanished(kind=kind) if kind in vocabulary.BINDING_KINDS:
                self._groups.remove(data.namespace, data.name)
                self._forget((kind, data.namespace, data.name))
            case observations.DecisionMade():
                key = (data.kind, data.namespace, data.name)
                if key in self._bindings:
                    self._pending[key] = data
                    self._refused.discard(key)
                    self._settle(key)
                    self._update_groups(key)
            case _:
                pass

    def _take_cluster(self, cluster: cluster_objects.ClusterManifest) -> None:
        name = cluster.metadata.name
        before = self._fleet.get(name)
        is_changed = before is not None and (
            before.metadata.labels != cluster.metadata.labels
            or before.spec != cluster.spec
            or (
                before.metadata.deletion_timestamp is None and cluster.metadata.deletion_timestamp is not None
            )
        )
        affected = set(self._selecting(name)) if is_changed else set[Key]()
        self._fleet.put(cluster)
        if is_changed:
            affected.update(self._selecting(name))
            self._due.update(dict.fromkeys(sorted(affected)))

    def _selecting(self, cluster: str) -> Iterator[Key]:
        """Yield the bindings whose placement selects a cluster.

        If a placement has several affinity groups, the group that the binding uses must select the cluster.
        """
        for placed in self._by_placement.values():
            groups = placed.placement.cluster_affinities
            if not groups:
                if self._fleet.matches(placed.placement.cluster_affinity, cluster):
                    yield from placed.keys
                continue
            selecting = {group.affinity_name for group in groups if self._fleet.matches(group, cluster)}
            names = {group.affinity_name for group in groups}
            for key in placed.keys:
                used = self._bindings[key].status.scheduler_observing_affinity_name
                if used in selecting or used not in names:
                    yield key

    def _take_binding(self, key: Key, binding: ObservedBinding, *, is_listed: bool) -> None:
        """Fold a version of a binding; ignore one that is not newer than the known one, unless it comes from a list."""
        known = self._bindings.get(key)
        if (
            known is not None
            and known.metadata.uid == binding.metadata.uid
            and known.version >= binding.version
            and not is_listed
        ):
            return
        if not self._is_scheduled_here(binding):
            self._forget(key)
            self._groups.put(binding)
            return
        binding = self._with_shared_placement(key, binding)
        self._bindings[key] = binding
        if key in self._pending:
            self._settle(key)
        elif known is None or (known.metadata.uid, known.metadata.generation) != (
            binding.metadata.uid,
            binding.metadata.generation,
        ):
            self._due[key] = None
        self._update_groups(key)

    def _update_groups(self, key: Key) -> None:
        """Update a binding's clusters in its groups: those of the pending decision, unless the API has refused it."""
        decision = None if key in self._refused else self._pending.get(key)
        assumed = decision.clusters if decision is not None and decision.places else None
        self._groups.put(self._bindings[key], assumed)

    def _is_scheduled_here(self, binding: ObservedBinding) -> bool:
        suspension = binding.spec.suspension
        return (
            binding.spec.scheduler_name == self._name
            and not binding.metadata.deletion_timestamp
            and not (suspension is not None and suspension.scheduling)
            and any(mark in binding.metadata.labels for mark in _MARKS)
        )

    def _with_shared_placement(self, key: Key, binding: ObservedBinding) -> ObservedBinding:
        """Return the binding with a shared placement object, because thousands of bindings have equal placements."""
        digest = msgspec.json.encode(binding.spec.placement)
        if self._placements.get(key) != digest:
            self._leave_placement(key)
            self._placements[key] = digest
            self._by_placement.setdefault(digest, _Placed(binding.spec.placement, set())).keys.add(key)
        shared = self._by_placement[digest].placement
        spec = msgspec.structs.replace(binding.spec, placement=shared)
        return msgspec.structs.replace(binding, spec=spec)

    def _leave_placement(self, key: Key) -> None:
        digest = self._placements.pop(key, None)
        if digest is None:
            return
        placed = self._by_placement[digest]
        placed.keys.discard(key)
        if not placed.keys:
            del self._by_placement[digest]

    def _forget(self, key: Key) -> None:
        self._leave_placement(key)
        for kept in (self._bindings, self._pending, self._due, self._failures):
            kept.pop(key, None)
        self._due_after_write.discard(key)
        self._refused.discard(key)

    def _settle(self, key: Key) -> None:
        """Drop a decision that its binding shows, or that is obsolete because the binding has changed since.

        In the second case the binding is due again.
        """
        binding, decision = self._bindings[key], self._pending[key]
        if writes.next_write(binding, decision) is not None:
            return
        del self._pending[key]
        self._refused.discard(key)
        if not writes.is_shown(binding, decision) or key in self._due_after_write:
            self._due[key] = None
        self._due_after_write.discard(key)

    def due_ms(self) -> int | None:
        """When the next retry is due, on the clock of ``elapsed_ms``; None if no retry is scheduled."""
        while self._retries and not self._is_valid_retry(*self._retries[0]):
            heapq.heappop(self._retries)
        return self._retries[0][0] if self._retries else None

    def _is_valid_retry(self, due_ms: int, key: Key) -> bool:
        """Whether a retry in the heap belongs to the binding's last failure; earlier retries are outdated."""
        return key in self._failures and self._failures[key][1] == due_ms

    def decide(self, now_ms: int, elapsed_ms: int, count: int) -> list[observations.DecisionMade]:
        """Return decisions on at most ``count`` due bindings, without those that change nothing.

        Retries use the monotonic clock ``elapsed_ms``, because the wall clock ``now_ms`` may be corrected.
        """
        while self._retries and self._retries[0][0] <= elapsed_ms:
            due_ms, key = heapq.heappop(self._retries)
            if self._is_valid_retry(due_ms, key):
                self._due[key] = None
        made: list[observations.DecisionMade] = []
        for key in list(itertools.islice(self._due, count)):
            del self._due[key]
            if key in self._pending:
                self._due_after_write.add(key)
                continue
            binding = self._bindings[key]
            decision, is_retried = self._decide(key, binding, now_ms)
            if is_retried:
                self._retry(key, decision.reason, elapsed_ms)
            else:
                self._failures.pop(key, None)
            if writes.next_write(binding, decision) is not None:
                made.append(decision)
                if decision.places:
                    self._groups.put(binding, decision.clusters)
        return made

    @property
    def has_due(self) -> bool:
        """Whether bindings wait for a decision."""
        return bool(self._due)

    def _retry(self, key: Key, reason: str, elapsed_ms: int) -> None:
        count, _ = self._failures.get(key, (0, 0))
        delay_ms = min(RETRY_MS << min(count, 10), RETRY_MS_MAX)
        if reason == failures.UNSCHEDULABLE:
            delay_ms = UNSCHEDULABLE_MS
        self._failures[key] = count + 1, elapsed_ms + delay_ms
        heapq.heappush(self._retries, (elapsed_ms + delay_ms, key))

    def _decide(
        self, key: Key, binding: ObservedBinding, now_ms: int
    ) -> tuple[observations.DecisionMade, bool]:
        """Return the decision on a binding, and whether the binding is to be tried again later."""
        try:
            request = parsing.read_request(binding.scheduling_input(), self._fleet)
        except (parsing.UnreadableError, msgspec.MsgspecError) as error:
            return _decision_event(key, binding, now_ms, _refused(binding, f"not understood: {error}")), False
        request = group_index.restricted(request, self._groups.restrictions(binding))
        decision = schedule.schedule(request, self._fleet)
        if decision.trigger == triggers.NONE:
            decision = _with_same_condition(binding, decision)
        return _decision_event(key, binding, now_ms, decision), decision.retry


def _refused(binding: ObservedBinding, reason: str) -> decisions.Decision:
    return decisions.Decision(
        current=tuple(binding.placed.items()),
        chosen=None,
        trigger=triggers.NONE,
        fresh=False,
        affinity_name=binding.status.scheduler_observing_affinity_name,
        status="False",
        reason=failures.SCHEDULER_ERROR,
        message=reason,
    )


def _with_same_condition(binding: ObservedBinding, decision: decisions.Decision) -> decisions.Decision:
    """Return the decision with the binding's present Scheduled condition, so that writing it changes no condition.

    If the binding has no condition, use that of a success.
    """
    condition = binding.scheduled
    return msgspec.structs.replace(
        decision,
        status=writes.TRUE if condition is None else condition.status,
        reason=decisions.SUCCESS if condition is None else condition.reason,
        message=decisions.SCHEDULED_MESSAGE if condition is None else condition.message,
    )


def _decision_event(
    key: Key, binding: ObservedBinding, now_ms: int, decision: decisions.Decision
) -> observations.DecisionMade:
    kind, namespace, name = key
    clusters = dict(decision.clusters)
    return observations.DecisionMade(
        kind=kind,
        namespace=namespace,
        name=name,
        uid=binding.metadata.uid,
        generation=binding.metadata.generation,
        version=binding.version,
        trigger=decision.trigger,
        fresh=decision.fresh,
        clusters=clusters,
        places=decision.changed and clusters != binding.placed,
        applied=_applied(binding) if decision.records_placement else "",
        affinity=decision.affinity_name,
        status=decision.status,
        reason=decision.reason,
        message=decision.message,
        time=times.to_seconds_text(now_ms),
    )


def _applied(binding: ObservedBinding) -> str:
    """The placement to record as applied; empty if the binding has it already."""
    placement = msgspec.json.encode(binding.spec.placement).decode()
    return "" if writes.is_same_placement(binding.applied, placement) else placement
