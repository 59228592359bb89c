"""Maps each folded record to the API objects it changed; feeds watches.

This module knows which objects each projection renders, and their kinds. A removal must be recorded before the
projection deletes its row, because the change contains the last document: the object as last rendered in lists, with
the number of its removal as resourceVersion. The last document of a Work is an exception: it lacks the template and the
overriders, which are stored once for all clusters.
"""

from collections.abc import Mapping

from engine.domain.bindings import Mark
from events import decisions, shapes
from events.validation.verdicts import Taken
from projections import changes
from projections.bindings import Binding, Bindings
from projections.changes import Changes
from projections.clusters import Cluster
from projections.documents.bindings import binding_document
from projections.documents.clusters import cluster_document
from projections.documents.objects import object_document
from projections.documents.works import work_object
from projections.objects import Objects
from projections.placements import Placements
from projections.rebalancers import Rebalancers
from projections.works import Work


class ChangedObjects:
    """Records in ``Changes`` which API objects the other projections changed."""

    def __init__(
        self,
        changes_recorded: Changes,
        objects: Objects,
        bindings: Bindings,
        rebalancers: Rebalancers,
        placements: Placements,
    ) -> None:
        self._changes = changes_recorded
        self._objects = objects
        self._bindings = bindings
        self._rebalancers = rebalancers
        self._placements = placements

    def object_put(self, key_id: int, taken: Taken) -> None:
        head, record = taken.head, taken.record
        if head is not None:
            kind = changes.kind_of(head.api_version, head.kind)
            self._changes.touch(record.number, kind, key_id, added=taken.is_new)

    def status_put(self, key_id: int, taken: Taken) -> None:
        """Record that a client wrote the status of an object."""
        if taken.head is not None:
            kind = changes.kind_of(taken.head.api_version, taken.head.kind)
            self._changes.touch(taken.record.number, kind, key_id)

    def own_status_put(self, key_id: int, number: int) -> None:
        """Record that the engine wrote the status of an object."""
        row = self._objects.get(key_id)
        if row is not None:
            self._changes.touch(number, changes.kind_of(row.api_version, row.kind), key_id)

    def mark_put(
        self, key_id: int, number: int, data: decisions.TemplateMarked | decisions.BindingReleased
    ) -> None:
        """Record that a template got the mark of a lazy policy, or lost it; must be called before its binding changes.

        A new mark has no effect on a template with a claim, which is rendered with the marks of the claim.
        """
        is_marked = isinstance(data, decisions.TemplateMarked)
        binding = self._bindings.get(key_id)
        if is_marked and binding is not None and binding.claim is not None:
            return
        mark = Mark(data.policy, data.permanent_id) if is_marked else None
        if self._objects.put_mark(key_id, number, mark):
            self.own_status_put(key_id, number)

    def object_removed(self, key_id: int, number: int) -> None:
        """Record the removal of an object; must be called before its row and its status are deleted."""
        row = self._objects.get(key_id)
        if row is not None:
            binding, rebalancer = self._bindings.get(key_id), self._rebalancers.get(key_id)
            last = object_document(row, binding, rebalancer, managed=True)
            self._changes.remove(number, changes.kind_of(row.api_version, row.kind), key_id, last)

    def binding_changed(self, key_id: int, number: int, *, added: bool) -> None:
        """Record the rendered binding, and the rendered template, as changed if decision ``number`` changed it."""
        binding = self._bindings.get(key_id)
        if binding is None or binding.number != number:
            return
        self._changes.touch(number, _binding_kind(binding.template), key_id, added=added)
        if binding.template_number == number:
            template = binding.template
            self._changes.touch(number, changes.kind_of(template.api_version, template.kind), key_id)

    def binding_removed(
        self, key_id: int, number: int, binding: Binding, dependents: Mapping[str, Binding]
    ) -> None:
        placement, applied = self._placements.get(binding.placement), self._placements.get(binding.applied)
        last = binding_document(binding, placement, applied, managed=True, dependents=dependents)
        self._changes.remove(number, _binding_kind(binding.template), key_id, last)

    def rebalancer_changed(self, key_id: int, number: int) -> None:
        self._changes.touch(number, changes.REBALANCER, key_id)

    def cluster_changed(self, key_id: int, number: int, *, added: bool) -> None:
        self._changes.touch(number, changes.CLUSTER, key_id, added=added)

    def cluster_removed(self, key_id: int, number: int, cluster: Cluster) -> None:
        last = cluster_document(cluster, managed=True)
        self._changes.remove(number, changes.CLUSTER, key_id, last)

    def work_touched(self, where: tuple[int, int], number: int) -> None:
        """Record that a work's rendered content changed; ``where`` has the key ids of its cluster and its binding."""
        member, key_id = where
        self._changes.touch(number, changes.WORK, key_id, member=member)

    def work_changed(
        self, where: tuple[int, int], number: int, cluster: str, before: Work | None, after: Work | None
    ) -> None:
        """Record that a work was applied, suspended or removed.

        ``where`` are the key ids of its cluster and its binding.
        """
        member, key_id = where
        if after is not None:
            self._changes.touch(number, changes.WORK, key_id, added=before is None, member=member)
        elif before is not None:
            last = work_object(cluster, before, None)
            self._changes.remove(number, changes.WORK, key_id, last, member=member)


def _binding_kind(template: shapes.WorkloadRef) -> str:
    return changes.RESOURCE_BINDING if template.namespace else changes.CLUSTER_RESOURCE_BINDING
