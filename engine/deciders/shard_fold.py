"""The fold of one shard: take inputs, decide a step and return its records, or replay a recorded step.

The live owner, recovery and the verifier all use it. It is pure: time, budget and inputs are arguments.
"""

import hashlib
from collections.abc import Generator, Iterable, Iterator
from typing import Final

from msgspec import Struct

from engine.deciders import (
    affected_keys,
    apply_decisions,
    binding_decision,
    cluster_departure,
    cluster_health,
    intake,
    overall_quotas,
    preemption_victims,
    priority_resolution,
    rebalance,
    sharing,
    step_outputs,
    waiting_keys,
    workload_groups,
)
from engine.deciders import state as states
from engine.deciders.deferred_changes import DeferredChanges
from engine.deciders.fact_changes import FactRefused, FoldedFacts, HealthReported
from engine.deciders.facts import Facts
from engine.deciders.indexes import Indexes
from engine.deciders.placement_cache import Placements
from engine.deciders.state import ShardState, Waiting
from engine.deciders.timers import Timers
from events import chain, decisions, keys, release, shapes, topics
from events.records import Record, StoredRecord
from events.validation import manifests, verdicts

FACT_BACKLOG_MAX: Final = 10_000
"""A step is due once more facts than this were folded since the last step, as recovery must read all of them again."""

OUTPUTS_MAX: Final = 5_000
"""A step that has emitted this many records leaves the other keys to the next step."""

_STEP_DIGEST_BYTES: Final = 16
_RELEASES_TOUCHING_ALL: Final = ("0.1.0", "0.2.0", "0.3.0", "0.4.0")
"""Releases in which each cluster report queued all clusters that are not ready; replays of their steps do so too."""

_RELEASES_WITHOUT_QUOTAS: Final = (*_RELEASES_TOUCHING_ALL, "0.5.0")
"""Releases that ignored FederatedResourceQuotas and ``workloadAffinity`` and did not queue unfit bindings again."""

_ANNOUNCES: Final = states.SPEC | states.PRIORITY


class Step(Struct, frozen=True):
    """The result of a turn: the step, its records (``StepTaken`` first) and the scheduling passes to be explained.

    ``since_ms`` is the time of the earliest input on which the step decided; None if the step decided nothing.
    """

    taken: decisions.StepTaken
    records: list[Record]
    passes: list[step_outputs.SchedulingPass]
    since_ms: int | None


class ShardFold:
    """State of a shard with all derived data. ``ends`` are the next offsets by input topic."""

    def __init__(
        self, state: ShardState, ends: dict[str, int], inputs: Iterable[verdicts.PartitionState]
    ) -> None:
        self.state = state
        self.ends = ends
        self.indexes = Indexes(state.bindings.values(), state.watches.values())
        self.deferred = DeferredChanges()
        self.placements = Placements(state.placements)
        self._folds = {
            partition.topic: verdicts.PartitionFold(partition, manifests.check) for partition in inputs
        }
        self._digests = {topic: _hasher() for topic in (*topics.FACT_TOPICS, *topics.OWN_TOPICS)}
        self._timers = Timers(state)
        self._refused: list[verdicts.Refused] = []
        self._own_taken = 0
        self._backlog = 0

    @property
    def inputs(self) -> list[verdicts.PartitionState]:
        """States of the folds over the shard's own partitions, for a snapshot."""
        return [fold.state for fold in self._folds.values()]

    @property
    def queued(self) -> int:
        """The number of keys that wait to be decided."""
        state = self.state
        new = (key for key in state.touched if key not in state.waiting and key not in state.reported)
        return len(state.waiting) + len(state.reported) + sum(1 for _ in new)

    def follow(self, facts: FoldedFacts) -> Iterator[None]:
        """Apply the changes that facts cause, and yield after each; skip facts that were folded already.

        All facts count as folded from the first ``next`` on, so take no step before the iterator is exhausted.
        """
        topic = facts.records[0].topic
        if facts.records[0].offset < self.ends[topic]:
            facts = facts.after(self.ends[topic])
            if not facts.records:
                return
        self.ends[topic] = facts.records[-1].offset + 1
        self._digests[topic].update(facts.checksums)
        self._backlog += len(facts.records)
        for changed in facts.changes:
            if changed.shard not in (None, self.state.shard):
                continue
            if isinstance(changed.change, FactRefused):
                self._refused.append(changed.change.refused)
                continue
            affected_keys.queue_affected(self.state, self.indexes, self.deferred, self.placements, changed)
            if isinstance(changed.change, HealthReported):
                self._await_report(changed.change.name)
            yield

    def take(self, record: StoredRecord) -> None:
        """Fold the next record of one of the shard's own partitions."""
        self.ends[record.topic] = record.offset + 1
        self._digests[record.topic].update(record.checksum)
        self._own_taken += 1
        verdict = self._folds[record.topic].take(record)
        match verdict:
            case verdicts.Taken():
                intake.take(self.state, verdict)
                # Reports of members, the most frequent input, change nothing that is indexed.
                if record.topic != topics.HEALTH:
                    self.indexes.update(record.key, self.state.bindings.get(record.key))
            case verdicts.Refused():
                self._refused.append(verdict)
            case verdicts.Skipped():
                return

    def is_due(self, time_ms: int) -> bool:
        """Whether a step is due: keys, inputs or refusals wait, a timer has fired, or the backlog of facts is long."""
        state = self.state
        is_busy = (
            self.deferred.are_due(state, self.indexes)
            or state.touched
            or state.waiting
            or state.reported
            # A replay folds all facts of a step before the shard's own inputs. So after own inputs a step must come
            # first.
            or self._own_taken
            or self._refused
        )
        due_ms = self.next_timer_ms()
        return bool(is_busy) or self._backlog > FACT_BACKLOG_MAX or (due_ms is not None and due_ms <= time_ms)

    def next_timer_ms(self) -> int | None:
        """Return the time at which a timer makes a step due; None for never."""
        return self._timers.next_ms()

    def decide(
        self, facts: Facts, time_ms: int, budget: int, *, term: int | None = None, explained: str = ""
    ) -> Step:
        """Take a step: decide at most ``budget`` of the waiting keys, fewer if they emit many records.

        A ``term`` other than the current one begins an ownership. If the key ``explained`` is scheduled, the step
        contains the passes to explain.
        """
        portions = self.decide_in_portions(facts, time_ms, budget, term=term, explained=explained)
        while True:
            try:
                next(portions)
            except StopIteration as end:
                return end.value

    def decide_in_portions(
        self, facts: Facts, time_ms: int, budget: int, *, term: int | None = None, explained: str = ""
    ) -> Generator[None, None, Step]:
        """Take a step as ``decide`` does, but yield after each key and some records.

        The shard's state is incomplete until the generator ends: do not fold into it or save it before.
        """
        state = self.state
        number = state.number + 1
        at_ms = max(time_ms, state.time_ms)
        view = step_outputs.View(
            state, facts, self.placements, state.term if term is None else term, number, at_ms, explained
        )
        if view.term != state.term:
            self._begin(at_ms, facts)
        self._prepare_step(facts, at_ms, release.RELEASE)
        collector = step_outputs.Collector(view)
        for refused in self._refused:
            collector.reject(refused)
        decided: list[Waiting] = []
        for key, waiting in waiting_keys.pop(state, budget):
            decided.append(waiting)
            collector.take(waiting.cause)
            yield from collector.take_all(self._decide_key(key, waiting, view))
            self._finish_key(key, facts, at_ms)
            yield
            # Stop only between keys: the record counts whole keys (``processed``), and a replay pops as many.
            if len(collector.outputs) >= OUTPUTS_MAX:
                break
        if state.departures:
            yield from collector.take_all(cluster_departure.decide(self.indexes, view))
        cluster_departure.settle(state, facts, self.indexes)
        outputs = yield from collector.encode_in_portions()
        taken = decisions.StepTaken(
            shard=state.shard,
            number=number,
            term=view.term,
            time_ms=at_ms,
            release=release.RELEASE,
            ends=dict(self.ends),
            processed=len(decided),
            outputs=len(outputs),
            inputs_digest=self._inputs_digest(),
            outputs_digest=digest_of(outputs),
            previous=state.digest,
            declared="".join(chain.mark_of(output) for output in outputs),
        )
        first = collector.record(step_outputs.Output(taken, state.shard, str(state.shard), ""), 0)
        self._commit(taken, first.value)
        since_ms = min((waiting.since_ms for waiting in decided), default=None)
        return Step(taken, [first, *outputs], collector.passes, since_ms)

    def replay(
        self, facts: Facts, taken: decisions.StepTaken, value: bytes, outputs: Iterable[shapes.Event]
    ) -> None:
        """Replay a recorded step after its inputs were taken: apply its decisions, never decide again."""
        if taken.term != self.state.term:
            self._begin(taken.time_ms, facts)
        # The same calls in the same order as ``decide``; otherwise the recovered state would differ from the owner's.
        self._prepare_step(facts, taken.time_ms, taken.release)
        popped = [key for key, _ in waiting_keys.pop(self.state, taken.processed)]
        # ``decide_in_portions`` finishes each key before it decides the next one; here all decisions are applied
        # first. So applying a decision must not depend on whether other keys are finished, and finishing a key must
        # not depend on decisions about later keys.
        for data in outputs:
            apply_decisions.apply(self.state, data, taken.term, taken.number)
        for key in popped:
            self._finish_key(key, facts, taken.time_ms)
        cluster_departure.settle(self.state, facts, self.indexes)
        self._commit(taken, value)

    def _await_report(self, cluster: str) -> None:
        """Set the timer that expires if a cluster of this shard sends no further report in time."""
        watch = self.state.watches.get(keys.cluster_key(cluster))
        if watch is not None:
            self._timers.set(watch, watch.due_ms)

    def _begin(self, at_ms: int, facts: Facts) -> None:
        """Begin an ownership of the shard: give each watched cluster a full grace period again.

        Quotas and groups are evaluated again, since the former owner may have run a release without them. Bindings
        claim what they use, without another scheduling pass.
        """
        cause = states.Cause(at_ms=at_ms)
        for key in facts.quotas:
            if keys.shard_of(key) == self.state.shard:
                self.deferred.quotas.setdefault(key, cause)
        for namespace in facts.overall:
            self.deferred.add_limits(self.state, self.indexes, namespace, states.TERM, cause)
        self.deferred.add_groups(self.state, self.indexes, self.placements, cause)
        self.state.began_ms = at_ms
        for watch in self.state.watches.values():
            cluster_health.begin(watch, at_ms)
            self._timers.set(watch, watch.due_ms)

    def _prepare_step(self, facts: Facts, at_ms: int, of_release: str) -> None:
        """Queue keys of deferred changes and due timers, and order the queue, by the rules of ``of_release``."""
        self.deferred.queue_watches(self.state)
        touches_all = of_release in _RELEASES_TOUCHING_ALL
        self.deferred.queue_not_ready(self.state, self.indexes, facts, touches_all=touches_all)
        if of_release not in _RELEASES_WITHOUT_QUOTAS:
            self.deferred.queue_bindings(self.state, self.indexes, self.placements)
        for due_ms, key in self._timers.pop(at_ms):
            waiting_keys.enqueue(self.state, key, states.TIMER, states.Cause(f"timer/{due_ms}", at_ms=due_ms))
        if facts.has_priorities:
            bindings = self.state.bindings

            def priority_of(key: str) -> int:
                binding = bindings.get(key)
                return 0 if binding is None else priority_resolution.priority_of(binding, facts)

            waiting_keys.end_intake(self.state, priority_of)
        else:
            waiting_keys.end_intake(self.state)

    def _decide_key(self, key: str, waiting: Waiting, view: step_outputs.View) -> step_outputs.Outputs[None]:
        rebalancer = self.state.rebalancers.get(key)
        if rebalancer is not None:
            yield from rebalance.decide(rebalancer, view)
        watch = self.state.watches.get(key)
        if watch is not None:
            yield from cluster_health.decide(watch, view)
        if self.state.unanswered_requests and key == keys.capacity_key(self.state.shard):
            yield from preemption_victims.answer(self.indexes, view)
        group = self.state.groups.get(key)
        if group is not None:
            yield from workload_groups.share(key, group)
        ledger = self.state.ledgers.get(key)
        if ledger is not None:
            yield from overall_quotas.share(ledger, view.facts.overall)
        binding = self.state.bindings.get(key)
        if waiting.flags & _ANNOUNCES and keys.priority_class_of(key):
            yield from priority_resolution.announce(key, binding.template if binding else None, view)
        if binding is not None:
            yield from binding_decision.decide(binding, waiting.flags, view)

    def _finish_key(self, key: str, facts: Facts, at_ms: int) -> None:
        """Clean up after a decided key, set its timer and update the indexes."""
        state = self.state
        apply_decisions.settle(state, key, at_ms)
        rebalancer = state.rebalancers.get(key)
        if rebalancer is not None:
            self._timers.set(rebalancer, rebalance.expires_ms(rebalancer))
        watch = state.watches.get(key)
        if watch is not None:
            cluster_health.settle(watch, facts, at_ms)
            self._timers.set(watch, watch.due_ms)
        binding = state.bindings.get(key)
        if binding is not None:
            self._timers.set(binding, binding_decision.due_ms(state, binding, facts, self.placements))
            sharing.compact(binding)
        self.indexes.update(key, binding)

    def _inputs_digest(self) -> str:
        hasher = _hasher()
        # In topic order: the digest is recorded, and verification computes it again.
        for digest in self._digests.values():
            hasher.update(digest.digest())
        return hasher.hexdigest()

    def _commit(self, taken: decisions.StepTaken, value: bytes) -> None:
        state = self.state
        state.number, state.term, state.time_ms = taken.number, taken.term, taken.time_ms
        state.digest = chain.step_digest(value)
        state.placements_kept = self.placements.drop_unused(state.bindings.values(), state.placements_kept)
        self._digests = {topic: _hasher() for topic in self._digests}
        self._refused = []
        self._own_taken = 0
        self._backlog = 0


def digest_of(outputs: Iterable[Record | StoredRecord]) -> str:
    """Return the digest of a step's outputs, in order."""
    hasher = _hasher()
    for output in outputs:
        hasher.update(output.checksum)
    return hasher.hexdigest()


def _hasher() -> "hashlib.blake2b":
    return hashlib.blake2b(digest_size=_STEP_DIGEST_BYTES)
