"""Topic ``specs``: templates and rebalancers."""

import msgspec

from events import keys, shapes


class TemplateApplied(shapes.Event, frozen=True, kw_only=True):
    """A template as it is wanted now: the whole object.

    ``expects`` is the write version (offset + 1) of the last write that the writer has seen, 0 to create
    only, and absent if the last write wins.
    """

    manifest: msgspec.Raw
    expects: shapes.Count | None = None


class TemplateDeleted(shapes.Event, frozen=True, kw_only=True):
    """A template that is not wanted any more; what runs of it is withdrawn everywhere.

    The deletion of a template; all its works are removed.
    """

    template: shapes.WorkloadRef
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.binding_key(self.template.kind, self.template.namespace, self.template.name)


class RebalancerApplied(shapes.Event, frozen=True, kw_only=True):
    """A WorkloadRebalancer as it is wanted now: the whole object."""

    manifest: msgspec.Raw
    expects: shapes.Count | None = None


class RebalancerDeleted(shapes.Event, frozen=True, kw_only=True):
    """A WorkloadRebalancer that was deleted; what it moved stays."""

    name: str
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.rebalancer_key(self.name)


class TemplateStatusWritten(shapes.Event, frozen=True, kw_only=True):
    """The whole status of a template, as somebody beside the engine sees it; what members report is shown over it.

    Written by an external client; replaces the previous status. Fields aggregated from members' reports
    override it when the object is rendered. ``managed_fields`` are the owners of the status fields; they have
    no influence on decisions.
    """

    template: shapes.WorkloadRef
    status: shapes.Object
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.binding_key(self.template.kind, self.template.namespace, self.template.name)


class DeletionAllowed(shapes.Event, frozen=True, kw_only=True):
    """What a template left in a cluster until somebody decides may be deleted there: ``suppressDeletion`` is false.

    Ends an eviction with ``suppressDeletion``: the workload that it kept in the cluster may be deleted. No
    effect if no such eviction of the template is pending in the cluster.
    """

    template: shapes.WorkloadRef
    cluster: str

    @property
    def record_key(self) -> str:
        return keys.binding_key(self.template.kind, self.template.namespace, self.template.name)
