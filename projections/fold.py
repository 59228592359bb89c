"""The fold of the log into all projections, one record after another in sequence order.

``inputs`` and ``steps`` decide whether a record takes effect; this module passes each record that does to the
projections that it concerns. It reads no clock, and no record makes it fail.
"""

from typing import Final

from engine.domain import federated_quotas
from events import (
    catalogue,
    cluster_decisions,
    clusters,
    codec,
    decisions,
    group_decisions,
    ids,
    keys,
    limits,
    links,
    observations,
    policies,
    quota_decisions,
    rebalance_decisions,
    records,
    rejections,
    shapes,
    specs,
    topics,
)
from events import works as work_events
from events.json_values import Json, decoded
from events.outputs import Judgement
from events.records import StoredRecord
from events.validation import verdicts
from projections import dependents, work_changes
from projections.bindings import MARKING, Bindings
from projections.changed_objects import ChangedObjects
from projections.changes import Changes
from projections.client_events import ClientEvents
from projections.clusters import Clusters
from projections.counts import Counts
from projections.inputs import Inputs
from projections.keys import Keys
from projections.namespaces import NamespaceWorks
from projections.objects import Objects
from projections.observed_bindings import ObservedBindings
from projections.placements import Placements
from projections.port import Rows, View
from projections.rebalancers import Rebalancers
from projections.rejections import Rejections
from projections.steps import Steps
from projections.timeline import Timeline
from projections.work_changes import WorkChanges
from projections.works import Works

_CHECKPOINT: Final = "UPDATE checkpoint SET number = ?, checksum = ?"
_NAMES: Final = {entry.struct: f"{entry.topic}.{entry.name}" for entry in catalogue.EVENT_TYPES}
_HIDDEN_LINKS: Final = (
    links.CapacityRequested,
    links.CapacityOffered,
    links.ClusterCleared,
    links.QuotaRequested,
    links.QuotaAnswered,
    links.GroupRequested,
    links.GroupAnswered,
)
"""Link events that appear on no timeline: the decision that is recorded with each of them appears there."""


class Fold:
    """All projections over one set of tables. Call ``take`` for each record, then ``flush`` within a transaction."""

    def __init__(self, rows: Rows, check: verdicts.Check) -> None:
        self.inputs = Inputs(rows, check)
        self._keys = Keys(rows)
        self._placements = Placements(rows)
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
        self._client_events = ClientEvents(rows)
        self._observed_bindings = ObservedBindings()
        self._changed_objects = ChangedObjects(
            self._changes, self._objects, self._bindings, self._rebalancers, self._placements
        )
        self._dependents = dependents.Dependents(self._keys, self._bindings, self._changed_objects)
        self._work_changes = WorkChanges(
            rows, self._keys, self._works, self._objects, self._bindings, self._changed_objects
        )
        self._namespace_works = NamespaceWorks(rows, self._works, self._changed_objects)
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
            self._work_changes,
            self._timeline,
            self._changes,
            self._rejections,
            self._client_events,
            self._observed_bindings,
            self.inputs,
        )
        self._last: StoredRecord | None = None

    def take(self, record: StoredRecord) -> None:
        """Fold the next record."""
        self._last = record
        self._changes.note(record.number)
        match record.topic:
            case topics.DECISIONS:
                self._take_decision(record)
            case topics.WORKS | topics.REJECTIONS:
                self._take_output(record)
            case topics.OBSERVATIONS:
                self._take_observation(record)
            case _:
                self._take_input(record)

    def flush(self, rows: Rows) -> None:
        """Write all changes and the checkpoint within the caller's transaction."""
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

    def _take_observation(self, record: StoredRecord) -> None:
        """Add an observation of another control plane to its object's timeline; store Events of clients."""
        # Decoders fail at a depth that differs between processes; the tables must be the same in all of them.
        is_deep = records.is_deeper(record.value, limits.RECORD_DEPTH_MAX)
        match None if is_deep else codec.decode(record):
            case codec.Decoded(
                data=observations.ObjectObserved()
                | observations.ObjectVanished()
                | observations.DecisionCompared()
                | observations.DecisionMade() as data
            ) if _is_key_length(data.timeline_key):
                self._counts.add(_NAMES[type(data)])
                self._touch(data.timeline_key, record.number)
                if isinstance(data, observations.ObjectObserved | observations.ObjectVanished):
                    self._observed_bindings.take(record.number, data)
                key = observations.subject_key(data)
                if key not in ("", data.timeline_key) and _is_key_length(key):
                    self._touch(key, record.number)
            case codec.Decoded(data=observations.ControlPlaneRestored() as data):
                self._counts.add(_NAMES[type(data)])
            case codec.Decoded(
                data=observations.KubernetesEventWritten() | observations.KubernetesEventDeleted() as data,
                envelope=envelope,
            ) if _is_key_length(data.record_key):
                is_taken = self._client_events.take(record.number, envelope, data)
                self._counts.add(_NAMES[type(data)] if is_taken else f"{record.topic}.skipped")
            case _:
                self._counts.add(f"{record.topic}.skipped")

    def _apply(self, taken: verdicts.Taken) -> None:
        record, data = taken.record, taken.data
        if record.topic == topics.CLUSTERS:
            self._apply_cluster(taken)
            return
        if isinstance(data, _HIDDEN_LINKS):
            return
        key_id = self._touch(record.key, record.number)
        self._touch_related(data, record.number)
        match data:
            case shapes.ObjectApplied() if taken.manifest is not None:
                self._work_changes.touch_rendered(key_id, taken)
                self._objects.put(key_id, taken, taken.manifest, data.manifest)
                self._changed_objects.object_put(key_id, taken)
                if isinstance(data, policies.NamespaceApplied):
                    self._namespace_works.namespace_put(key_id, taken, taken.manifest)
            case (
                specs.TemplateStatusWritten(status=status, managed_fields=owned)
                | policies.ConfigurationStatusWritten(status=status, managed_fields=owned)
            ):
                self._objects.put_status(key_id, taken, status, owned)
                self._changed_objects.status_put(key_id, taken)
            case specs.DeletionAllowed() | specs.SuspensionWritten():
                pass  # no object changes until a decision follows
            case _ if taken.head is not None:
                self._changed_objects.object_removed(key_id, record.number)
                self._work_changes.touch_rendered(key_id, taken)
                self._objects.remove(key_id)
                if isinstance(data, specs.RebalancerDeleted):
                    self._rebalancers.put(key_id, None)
                if isinstance(data, policies.NamespaceDeleted):
                    self._namespace_works.namespace_removed(key_id, record.number)
            case _:
                pass

    def _apply_cluster(self, taken: verdicts.Taken) -> None:
        number = taken.record.number
        key_id = self._touch(keys.cluster_key(taken.record.key), number)
        if isinstance(taken.data, clusters.MemberWrite):
            return  # the member's own API shows this; here it only appears on the cluster's timeline
        before = self._clusters.get(key_id)
        # Do this before the projection deletes the cluster, since the change contains the last document.
        if before is not None and isinstance(taken.data, clusters.ClusterLeft):
            self._changed_objects.cluster_removed(key_id, number, before)
        if isinstance(taken.data, clusters.ClusterLeaving | clusters.ClusterLeft):
            self._namespace_works.cluster_leaving(key_id, number)
        is_changed = self._clusters.take(key_id, taken)
        if is_changed and self._clusters.get(key_id) is not None:
            self._changed_objects.cluster_changed(key_id, number, added=before is None)
            if before is None:
                self._namespace_works.cluster_joined(key_id, taken.record.key, number, taken.at_ms)

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
            # Outputs that precede their step in the sequence take effect now, under the number of the step.
            for early in self._steps.take_early_outputs(record.partition):
                self._apply_output(early, record.number)
            return
        match data:
            case decisions.ClaimRefused() | quota_decisions.QuotaClaimed() | group_decisions.GroupClaimed():
                # Only add the decision to the timeline: it changes no binding, and the key may have no binding yet.
                self._touch(data.key, record.number)
            case decisions.BindingDecision():
                self._count_placement(data)
                self._take_placement(record, decoded, data)
            case rebalance_decisions.RebalancerDecision():
                self._take_rebalance(record, data)
            case group_decisions.GroupDecided():
                self._touch_related(data, record.number)
            case quota_decisions.QuotaDecided():
                self._touch_related(data, record.number)
                self._share_quotas(record.number, data)
            case cluster_decisions.ClusterDecision():
                # Only add the decision to the timeline of the cluster: an input that follows changes the cluster.
                self._touch(keys.cluster_key(data.name), record.number)
            case _:
                self._counts.add("decisions.misplaced")

    def _count_placement(self, data: decisions.BindingDecision) -> None:
        match data:
            case decisions.ScheduleDecided(trigger=trigger):
                self._counts.add(f"triggers.{trigger}")
            case decisions.ScheduleFailed(reason=reason, trigger=trigger):
                self._counts.add(f"triggers.{trigger}")
                self._counts.add(f"failures.{reason}")
            case _:
                pass

    def _take_placement(
        self, record: StoredRecord, decoded: codec.Decoded, data: decisions.BindingDecision
    ) -> None:
        key_id = self._touch(data.key, record.number)
        at_ms = self._steps.time_ms(record.partition)
        before = self._bindings.get(key_id)
        # Read these values before the fold, which changes the binding in place.
        needed, seen = (() if before is None else before.dependencies), dependents.shown(before)
        reported = work_changes.reported(before) if isinstance(data, decisions.StatusAggregated) else {}
        is_bound = work_changes.may_change_works(before, data)
        # Record the removal of a withdrawn binding before ``take`` deletes the binding, since the change
        # contains its last document.
        if before is None and isinstance(data, decisions.StatusAggregated):
            self._aggregate_quotas(record, data, at_ms)
            return
        if before is not None and isinstance(data, decisions.BindingWithdrawn):
            self._changed_objects.binding_removed(key_id, record.number, before, self._dependents.of(before))
            # The template may still exist; it is then rendered without the status and the marks of its binding.
            if before.template_number and self._objects.touch(key_id, record.number, before.template_uid):
                self._changed_objects.own_status_put(key_id, record.number)
        if isinstance(data, MARKING):
            self._changed_objects.mark_put(key_id, record.number, data)
        if self._bindings.take(key_id, record.number, at_ms, decoded.envelope, data):
            if isinstance(data, decisions.BindingDeclared | decisions.BindingClaimed):
                self._bindings.follow_template(key_id, data, self._objects)
            self._changed_objects.binding_changed(key_id, record.number, added=before is None)
            if isinstance(data, decisions.StatusAggregated):
                self._work_changes.report(key_id, record.number, at_ms, reported)
            elif is_bound:
                self._work_changes.bind(key_id, record.number)
            # Most decisions are about bindings without dependencies.
            if needed or isinstance(data, decisions.DependenciesDistributed):
                self._dependents.changed(data.key, record.number, needed, seen)
        elif not isinstance(data, MARKING):
            self._counts.add("decisions.unfounded")

    def _aggregate_quotas(self, record: StoredRecord, data: decisions.StatusAggregated, at_ms: int) -> None:
        """Update a FederatedResourceQuota and its works, which have no binding, with the reports of their clusters."""
        reports = work_changes.reports_of(data.members)
        self._work_changes.report_all(self._keys.of(data.key), record.number, at_ms, reports)
        self._put_quota_status(
            federated_quotas.object_key(data.key),
            record.number,
            {federated_quotas.MEMBERS: federated_quotas.status(data)},
        )

    def _share_quotas(self, number: int, data: quota_decisions.QuotaDecided) -> None:
        """Update the FederatedResourceQuotas of a namespace with the amounts granted to its bindings."""
        for name, used in data.used.items():
            key = keys.object_key(federated_quotas.KIND, data.namespace, name)
            self._put_quota_status(key, number, {federated_quotas.CLAIMED: used})

    def _put_quota_status(self, key: str, number: int, fields: Json) -> None:
        quota_id = self._touch(key, number)
        quota = self._objects.get(quota_id)
        # A client's status may contain invalid JSON.
        status: Json = {} if quota is None else decoded(quota.status)
        if self._objects.put_own_status(quota_id, number, {**status, **fields}):
            self._changed_objects.own_status_put(quota_id, number)

    def _take_rebalance(self, record: StoredRecord, data: rebalance_decisions.RebalancerDecision) -> None:
        key = data.subject
        key_id = self._touch(key, record.number)
        self._touch_related(data, record.number)
        head = self.inputs.head(topics.SPECS, key)
        if head is None or not self._rebalancers.take(key_id, record.number, head.uid, data):
            self._counts.add("decisions.unfounded")
        else:
            self._changed_objects.rebalancer_changed(key_id, record.number)

    def _take_output(self, record: StoredRecord) -> None:
        source = record.headers.get("ce_source", "")
        if record.topic == topics.REJECTIONS and not source.startswith(ids.SHARD_SOURCE):
            # Rejections from the write APIs are not outputs of a step.
            self._apply_output(record, record.number)
            return
        match self._steps.take_output(record):
            case Judgement.VALID:
                self._apply_output(record, record.number)
            case Judgement.EARLY:
                self._counts.add(f"{record.topic}.early")
            case Judgement.FOREIGN:
                self._counts.add(f"{record.topic}.ignored")

    def _apply_output(self, record: StoredRecord, number: int) -> None:
        """Fold a work or a rejection that is in effect.

        ``number`` becomes the number of a changed work: that of the record, or of its step if the step is later.
        """
        decoded = codec.decode(record)
        match decoded:
            case codec.Decoded(
                data=work_events.WorkApplied()
                | work_events.WorkRemoved()
                | work_events.WorkSuspended() as data
            ) if record.topic == topics.WORKS:
                self._counts.add(_NAMES[type(data)])
                key_id, head = self._touch(data.key, record.number, is_work=True), decoded.envelope
                # Use the header's id, as ``Steps`` does: in structured mode the envelope may have another id.
                at_ms = self._steps.time_ms(ids.step_of(record.headers["ce_id"])[0])
                self._work_changes.take(key_id, number, at_ms, head, data)
            case codec.Decoded(data=rejections.InputRejected() as data) if record.topic == topics.REJECTIONS:
                self._counts.add(_NAMES[type(data)])
                self._rejections.add(record.number, decoded.envelope.time, data)
                if data.key and _is_key_length(data.key):
                    key = keys.cluster_key(data.key) if data.topic == topics.CLUSTERS else data.key
                    self._touch(key, record.number)
            case _:
                self._counts.add(f"{record.topic}.skipped")

    def _touch_related(self, data: shapes.Event, number: int) -> None:
        for key in filter(_is_key_length, data.related):
            self._touch(key, number)

    def _touch(self, key: str, number: int, *, is_work: bool = False) -> int:
        """Add the record to the key's timeline; return the key's id."""
        key_id = self._keys.of(key)
        self._timeline.touch(key_id, number, is_work=is_work)
        return key_id


def _is_key_length(key: str) -> bool:
    """Whether a key in an event's data is within the length limit of record keys: memory holds all known keys."""
    return len(key) <= limits.KEY_BYTES_MAX
