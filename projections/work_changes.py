"""Follows everything that changes works: their own records, decisions on their bindings, templates and overriders."""

from typing import Final

from engine.domain import federated_quotas, namespaces
from events import decisions, keys, kube_objects, shapes, specs, topics
from events import works as events
from events.records import Envelope
from events.validation.verdicts import Taken
from projections import former_versions
from projections.bindings import Binding, Bindings
from projections.changed_objects import ChangedObjects
from projections.documents import works as documents
from projections.former_versions import FormerVersions, Version
from projections.keys import Keys
from projections.objects import ObjectRow, Objects
from projections.port import Rows
from projections.works import Work, WorkKeyIds, Works

Reports = dict[str, decisions.MemberStatus]
"""The last report on a binding from each cluster, by cluster."""

_NO_REPORTS: Final[Reports] = {}
_OVERRIDING: Final = frozenset({*documents.APPLIED, federated_quotas.KIND})


def reports_of(members: tuple[decisions.MemberStatus, ...]) -> Reports:
    """Return the statuses of the clusters that have reported, by cluster."""
    # A status that is not applied and has no message is the placeholder of a cluster that has not reported yet.
    return {member.cluster: member for member in members if member.applied or member.message}


def reported(binding: Binding | None) -> Reports:
    """Return the last reports on a binding."""
    return _NO_REPORTS if binding is None or binding.status is None else reports_of(binding.status.members)


def may_change_works(before: Binding | None, data: decisions.BindingDecision) -> bool:
    """Whether a decision may change the parts of works that are copied from their binding.

    ``before`` is the binding before the decision.
    """
    if before is None:
        return False
    match data:
        case decisions.BindingClaimed() | decisions.BindingReleased():
            return True
        case decisions.BindingRequired():
            # Check only the entries that changed: thousands of bindings may depend on one object.
            former = (before.required.get(requirement.by) for requirement in data.required_by)
            return any(part.preserves for part in (*data.required_by, *former) if part is not None)
        case _:
            return False


class WorkChanges:
    """Folds changes into ``Works`` and records which works changed."""

    def __init__(
        self,
        rows: Rows,
        keys_known: Keys,
        works: Works,
        objects: Objects,
        bindings: Bindings,
        changed: ChangedObjects,
    ) -> None:
        self._keys = keys_known
        self._works = works
        self._objects = objects
        self._former = FormerVersions(rows)
        self._bindings = bindings
        self._changed = changed

    def take(self, key_id: int, number: int, at_ms: int, head: Envelope, data: events.Work) -> None:
        """Fold a binding's work that is in effect."""
        where = (self._member(data.cluster), key_id)
        before = self._works.get(where)
        binding = self._bindings.get(key_id)
        if not self._works.take(where, number, at_ms, head, data, binding):
            return
        # Most of the time no former version is kept.
        if len(self._former):
            former, current = (self._versions(key_id, work) for work in (before, self._works.get(where)))
            for version in former - current:
                self._former.add(version, -1)
            for version in current - former:
                self._former.add(version, 1)
        # There may be a report for a new work already: the binding's status keeps the cluster's last report.
        if before is None and (member := reported(binding).get(data.cluster)) is not None:
            self._works.report(where, number, at_ms, member)
        self._changed.work_changed(where, number, data.cluster, before, self._works.get(where))

    def report(self, key_id: int, number: int, at_ms: int, before: Reports) -> None:
        """Update the works of clusters whose current report on a binding differs from the one in ``before``."""
        after = reported(self._bindings.get(key_id))
        for cluster in sorted(before.keys() | after.keys()):
            member = after.get(cluster)
            if member != before.get(cluster):
                self._report((self._member(cluster), key_id), number, at_ms, member)

    def report_all(self, key_id: int, number: int, at_ms: int, reports: Reports) -> None:
        """Store in each work of a key the report of the work's cluster, or None if the cluster has no report."""
        by_member = {self._member(cluster): member for cluster, member in reports.items()}
        for where in self._works.of_key(key_id):
            self._report(where, number, at_ms, by_member.get(where[0]))

    def bind(self, key_id: int, number: int) -> None:
        """Copy the claim of a binding into the works of the binding."""
        binding = self._bindings.get(key_id)
        if binding is None:
            return
        for where in self._works.of_key(key_id):
            if self._works.bind(where, number, binding):
                self._changed.work_touched(where, number)

    def touch_rendered(self, key_id: int, taken: Taken) -> None:
        """Mark works as changed whose rendering contains an object that is being written or deleted.

        The object is their template, their namespace, an override policy or a FederatedResourceQuota. Call this before
        the object changes, so that works can keep the version that they contain.
        """
        for where in self._rendered_with(key_id, taken):
            self._works.touch(where, taken.record.number)
            self._changed.work_touched(where, taken.record.number)

    def _rendered_with(self, key_id: int, taken: Taken) -> list[WorkKeyIds]:
        """Return the works whose rendered content depends on an object."""
        head = taken.head
        if head is None:
            return []
        if taken.record.topic == topics.SPECS:
            return self._rendered_with_template(key_id, taken.data)
        if (head.api_version, head.kind) == namespaces.KIND:
            return self._rendered_with_namespace(key_id, head.name, taken.manifest)
        # Check the topic as well as the kind: in another topic, a custom kind may have the same name.
        if taken.record.topic != topics.POLICIES or head.kind not in _OVERRIDING:
            return []
        namespace, _, _ = taken.record.key.rpartition(":")[2].rpartition("/")
        works = self._works.overridden_by(head.kind, namespace, head.name)
        current = self._objects.get(key_id) if works and head.kind in documents.APPLIED else None
        if current is None:
            return works
        mark = former_versions.mark_of_policy(current.version - 1)
        return self._without_version(works, Version(key_id, mark), current)

    def _rendered_with_namespace(
        self, key_id: int, name: str, written: kube_objects.Manifest | None
    ) -> list[WorkKeyIds]:
        """Return the works of a namespace that is propagated or deleted; their rendered content changes.

        If the namespace is no longer propagated, keep its version for its works and return none.
        ``written`` is the new manifest; None if the namespace is deleted.
        """
        works = self._works.of_key(key_id)
        version = Version(key_id, former_versions.MARK_OF_NAMESPACE)
        if written is None or namespaces.is_propagated(name, written.metadata.labels):
            self._former.drop(version)
            return works
        current = self._objects.get(key_id) if works and version not in self._former else None
        if current is not None:
            self._former.keep(version, current, len(works))
        return []

    def _rendered_with_template(self, key_id: int, data: shapes.Event) -> list[WorkKeyIds]:
        works = self._works.of_key(key_id)
        current = self._objects.get(key_id) if works else None
        if current is None or not isinstance(data, specs.TemplateApplied):
            return works
        mark, new = (
            former_versions.mark_of_template(raw) for raw in (current.manifest, bytes(data.manifest))
        )
        self._former.drop(Version(key_id, new))
        return works if mark == new else self._without_version(works, Version(key_id, mark), current)

    def _without_version(
        self, works: list[WorkKeyIds], version: Version, current: ObjectRow
    ) -> list[WorkKeyIds]:
        """Keep ``current`` as ``version`` of its object for those ``works`` that contain this version.

        Return the works that contain no kept version of the object: they show its new version.
        """
        contained = {where: self._versions(where[1], self._works.get(where)) for where in works}
        if count := sum(version in versions for versions in contained.values()):
            self._former.keep(version, current, count)
        return [
            where
            for where, versions in contained.items()
            if not any(known.key_id == version.key_id and known in self._former for known in versions)
        ]

    def _versions(self, key_id: int, work: Work | None) -> set[Version]:
        """Return the versions of template and override policies that a work contains; empty for a suspended work."""
        if work is None or work.suspended:
            return set()
        versions = {Version(key_id, work.digest)}
        for ref in work.overrides:
            policy = self._keys.of(former_versions.policy_key(ref))
            versions.add(Version(policy, former_versions.mark_of_policy(ref.offset)))
        return versions

    def flush(self, rows: Rows) -> None:
        self._former.flush(rows)

    def _report(
        self, where: WorkKeyIds, number: int, at_ms: int, member: decisions.MemberStatus | None
    ) -> None:
        if self._works.report(where, number, at_ms, member):
            self._changed.work_touched(where, number)

    def _member(self, cluster: str) -> int:
        return self._keys.of(keys.cluster_key(cluster))
