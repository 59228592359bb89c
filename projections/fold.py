"""The fold of the log into all views: one record after another, in the order of their numbers.

What takes effect is said elsewhere (``inputs``, ``steps``); here each record that does goes to the views that it
concerns. Nothing here reads a clock, and no record makes it fail.
"""

from collections.abc import Iterable
from typing import Final

from events import (
    catalogue,
    clusters,
    codec,
    decisions,
    ids,
    keys,
    limits,
    links,
    partitioning,
    policies,
    rejections,
    shapes,
    specs,
    topics,
    verdicts,
)
from events import works as work_events
from events.envelope import Envelope
from events.outputs import Judgement
from events.records import StoredRecord
from projections import work_documents
from projections.bindings import Binding, Bindings
from projections.changes import Changes
from projections.clusters import Clusters
from projections.counting import Counts
from projections.inputs import Inputs
from projections.keys import Keys
from projections.objects import Objects
from projections.placements import Placements
from projections.port import Rows, View
from projections.rebalancers import Rebalancers
from projections.rejections import Rejections
from projections.steps import Steps
from projections.telling import Telling
from projections.timeline import Timeline
from projections.works import Works

_CHECKPOINT: Final = "UPDATE checkpoint SET number = ?, checksum = ?"
_NAMES: Final = {entry.struct: f"{entry.topic}.{entry.name}" for entry in catalogue.EVENT_TYPES}
Reported = dict[str, tuple[bool, str]]
"""Whether a cluster has applied the newest work of a binding, and why not."""

_OF_CLUSTERS: Final = (decisions.ClusterSilenced, decisions.ClusterJudged, decisions.ClusterVacated)
_OF_REBALANCERS: Final = (
    decisions.RebalanceStarted,
    decisions.WorkloadRebalanced,
    decisions.RebalanceFinished,
    decisions.RebalancerExpired,
)


def _reported(binding: Binding | None) -> Reported:
    status = None if binding is None else binding.status
    return {} if status is None else {each.cluster: (each.applied, each.message) for each in status.members}


class Fold:
    """All views over one set of tables. ``take`` each record, then ``flush`` within a transaction."""

    def __init__(self, rows: Rows, check: verdicts.Check) -> None:
        self.inputs = Inputs(rows, check)
        self._keys = Keys(rows)
        self._placements = Placements()
        self._steps = Steps(rows)
        self._counts = Counts()
        self._objects = Objects(rows)
        self._bindings = Bindings(rows, self._placements)
        self._rebalancers = Rebalancers(rows)
        self._clusters = Clusters(rows)
        self._works = Works(rows)
        self._timeline = Timeline()
        self._changes = Changes()
        self._rejections = Rejections()
        self._telling = Telling(self._changes, self._objects, self._bindings)
        self._views: tuple[View, ...] = (
            self._keys,
            self._placements,
            self._steps,
            self._counts,
            self._objects,
            self._bindings,
            self._rebalancers,
            self._clusters,
            self._works,
            self._timeline,
            self._changes,
            self._rejections,
        )
        self._last: StoredRecord | None = None

    def take(self, record: StoredRecord) -> None:
        """Folds the next record."""
        self._last = record
        self._changes.seen(record.number)
        match record.topic:
            case topics.DECISIONS:
                self._take_decision(record)
            case topics.WORKS | topics.REJECTIONS:
                self._take_output(record)
            case _:
                self._take_input(record)

    def flush(self, rows: Rows) -> None:
        """Writes what changed, and the checkpoint, within the caller's transaction."""
        for view in self._views:
            view.flush(rows)
        if self._last is not None:
            rows.write(_CHECKPOINT, [(self._last.number, self._last.checksum)])

    def _take_input(self, record: StoredRecord) -> None:
        verdict = self.inputs.take(record)
        match verdict:
            case verdicts.Skipped():
                self._counts.add("inputs.skipped")
            case verdicts.Refused(verdict=word):
                self._counts.add(f"inputs.{word}")
            case verdicts.Taken():
                self._counts.add(_NAMES[type(verdict.data)])
                self._apply(verdict)

    def _apply(self, taken: verdicts.Taken) -> None:
        record, data = taken.record, taken.data
        match data:
            case links.RescheduleAsked(key=key, rebalancer=name):
                self._touch(key, record.number)
                self._touch(keys.rebalancer_key(name), record.number)
                return
            case links.RoomAsked() | links.RoomOffered() | links.ClusterCleared():
                # The stories of those who asked tell it by their decisions.
                return
            case (
                links.DependencyNeeded(by=by) | links.DependencyDropped(by=by) | links.PreemptionAsked(by=by)
            ):
                self._touch(record.key, record.number)
                self._touch(by, record.number)
                return
            case links.RescheduleAnswered(workload=ref):
                self._touch(keys.binding_key(ref.kind, ref.namespace, ref.name), record.number)
            case _:
                pass
        if record.topic == topics.CLUSTERS:
            self._apply_cluster(taken)
            return
        key_id = self._touch(record.key, record.number)
        match data:
            case (
                specs.TemplateApplied(manifest=raw)
                | specs.RebalancerApplied(manifest=raw)
                | policies.PolicyApplied(manifest=raw)
                | policies.NamespaceApplied(manifest=raw)
                | policies.InterpreterApplied(manifest=raw)
                | policies.ConfigurationApplied(manifest=raw)
            ) if taken.manifest is not None:
                self._objects.put(key_id, taken, taken.manifest, raw)
                self._telling.object_put(key_id, taken)
                self._touch_works(self._shown_with(key_id, taken), record.number)
            case (
                specs.TemplateStatusWritten(status=status, managed_fields=owned)
                | policies.ConfigurationStatusWritten(status=status, managed_fields=owned)
            ):
                self._objects.put_status(key_id, taken, status, owned)
                self._telling.status_put(key_id, taken)
            case specs.DeletionAllowed():
                pass  # what follows from it is a decision
            case _ if taken.head is not None:
                self._telling.object_removed(key_id, record.number)
                self._objects.remove(key_id)
                self._touch_works(self._shown_with(key_id, taken), record.number)
                if isinstance(data, specs.RebalancerDeleted):
                    self._rebalancers.remove(key_id)
            case _:
                pass

    def _shown_with(self, key_id: int, taken: verdicts.Taken) -> list[tuple[int, int]]:
        """The works that are shown with an object: those of a template, those that a policy overrides."""
        head = taken.head
        if head is None:
            return []
        if head.kind in work_documents.APPLIED:
            namespace, _, _ = taken.record.key.rpartition(":")[2].rpartition("/")
            return self._works.overridden_by(head.kind, namespace, head.name)
        return self._works.of_key(key_id) if taken.record.topic == topics.SPECS else []

    def _apply_cluster(self, taken: verdicts.Taken) -> None:
        number = taken.record.number
        key_id = self._touch(keys.cluster_key(taken.record.key), number)
        before = self._clusters.get(key_id)
        if before is not None and isinstance(taken.data, clusters.ClusterLeft):
            self._telling.cluster_removed(key_id, number, before)
        self._clusters.take(key_id, taken)
        if self._clusters.get(key_id) is not None:
            self._telling.cluster_changed(key_id, number, added=before is None)

    def _take_decision(self, record: StoredRecord) -> None:
        decoded = codec.decode(record)
        if not isinstance(decoded, codec.Decoded):
            self._counts.add("decisions.skipped")
            return
        data = decoded.data
        if not self._steps.take(record, data):
            self._counts.add("decisions.ignored")
            return
        self._counts.add(_NAMES[type(data)])
        if isinstance(data, decisions.StepTaken):
            # What came before its step takes effect with it, under the number of the step.
            for early in self._steps.due(record.partition):
                self._apply_output(early, record.number)
            return
        if isinstance(data, _OF_REBALANCERS):
            self._take_rebalance(record, data)
        elif isinstance(data, _OF_CLUSTERS):
            # What follows from it comes as an input; here it is a line of the cluster's story.
            self._touch(keys.cluster_key(data.name), record.number)
        else:
            self._take_placement(record, decoded, data)

    def _take_placement(self, record: StoredRecord, decoded: codec.Decoded, data: shapes.Event) -> None:
        key: object = getattr(data, "key", None)
        if not isinstance(key, str):
            self._counts.add("decisions.misplaced")
            return
        match data:
            case decisions.ScheduleDecided(trigger=trigger):
                self._counts.add(f"triggers.{trigger}")
            case decisions.ScheduleFailed(reason=reason, trigger=trigger):
                self._counts.add(f"triggers.{trigger}")
                self._counts.add(f"failures.{reason}")
            case _:
                pass
        key_id = self._touch(key, record.number)
        at_ms = self._steps.time_ms(record.partition)
        before = self._bindings.get(key_id)
        # Taken now, since the fold changes the binding in place.
        reported = _reported(before) if isinstance(data, decisions.StatusAggregated) else {}
        if before is not None and isinstance(data, decisions.BindingWithdrawn):
            self._telling.binding_removed(key_id, record.number, before)
        if self._bindings.take(key_id, record.number, at_ms, decoded.envelope, data):
            self._telling.binding_changed(key_id, record.number, added=before is None)
            if isinstance(data, decisions.StatusAggregated):
                self._report_works(key_id, record.number, reported)
        else:
            self._counts.add("decisions.unfounded")

    def _report_works(self, key_id: int, number: int, before: Reported) -> None:
        """Shows on works what their clusters reported, where that is not what they reported before."""
        binding = self._bindings.get(key_id)
        after = {} if binding is None else _reported(binding)
        for cluster in sorted(before.keys() | after.keys()):
            said = after.get(cluster)
            if said != before.get(cluster):
                where = (self._keys.of(keys.cluster_key(cluster)), key_id)
                applied, message = said or (None, "")
                if self._works.report(where, number, applied=applied, message=message):
                    self._telling.work_touched(where, number)

    def _touch_works(self, found: Iterable[tuple[int, int]], number: int) -> None:
        """What these works are shown with changed."""
        for where in found:
            self._works.touch(where, number)
            self._telling.work_touched(where, number)

    def _take_rebalance(
        self,
        record: StoredRecord,
        data: decisions.RebalanceStarted
        | decisions.WorkloadRebalanced
        | decisions.RebalanceFinished
        | decisions.RebalancerExpired,
    ) -> None:
        key = keys.rebalancer_key(data.name)
        key_id = self._touch(key, record.number)
        if isinstance(data, decisions.WorkloadRebalanced):
            ref = data.workload
            self._touch(keys.binding_key(ref.kind, ref.namespace, ref.name), record.number)
        head = self.inputs.head(topics.SPECS, partitioning.partition_of(key, topics.SHARDS), key)
        if head is None or not self._rebalancers.take(key_id, record.number, head.uid, data):
            self._counts.add("decisions.unfounded")
        else:
            self._telling.rebalancer_changed(key_id, record.number)

    def _take_output(self, record: StoredRecord) -> None:
        source = record.headers.get("ce_source", "")
        if record.topic == topics.REJECTIONS and not source.startswith(ids.SHARD_SOURCE):
            # The write APIs tell of what they refused themselves.
            self._apply_output(record, record.number)
            return
        match self._steps.take_output(record):
            case Judgement.COUNTS:
                self._apply_output(record, record.number)
            case Judgement.EARLY:
                self._counts.add(f"{record.topic}.early")
            case Judgement.FOREIGN:
                self._counts.add(f"{record.topic}.ignored")

    def _apply_output(self, record: StoredRecord, number: int) -> None:
        """Folds an output of a step that counted; it takes effect under a number."""
        decoded = codec.decode(record)
        match decoded:
            case codec.Decoded(
                data=work_events.WorkApplied()
                | work_events.WorkRemoved()
                | work_events.WorkSuspended() as data
            ) if record.topic == topics.WORKS:
                self._counts.add(_NAMES[type(data)])
                self._take_work(self._touch(data.key, record.number), number, decoded.envelope, data)
            case codec.Decoded(data=rejections.InputRejected() as data) if record.topic == topics.REJECTIONS:
                self._counts.add(_NAMES[type(data)])
                self._rejections.add(record.number, decoded.envelope.time, data)
                if 0 < len(data.key) <= limits.KEY_BYTES_MAX:
                    key = keys.cluster_key(data.key) if data.topic == topics.CLUSTERS else data.key
                    self._touch(key, record.number)
            case _:
                self._counts.add(f"{record.topic}.skipped")

    def _take_work(
        self,
        key_id: int,
        number: int,
        head: Envelope,
        data: work_events.WorkApplied | work_events.WorkRemoved | work_events.WorkSuspended,
    ) -> None:
        where = (self._keys.of(keys.cluster_key(data.cluster)), key_id)
        at_ms = self._steps.time_ms(ids.step_of(head.id)[0])
        before = self._works.get(where)
        self._works.take(where, number, at_ms, head, data)
        if before is None and (binding := self._bindings.get(key_id)) is not None:
            said = _reported(binding).get(data.cluster)
            if said is not None:
                self._works.report(where, number, applied=said[0], message=said[1])
        after = self._works.get(where)
        self._telling.work_changed(where, number, data.cluster, before, after)

    def _touch(self, key: str, number: int) -> int:
        """Puts the record on the timeline of a key; gives the number of the key."""
        key_id = self._keys.of(key)
        self._timeline.touch(key_id, number)
        return key_id
