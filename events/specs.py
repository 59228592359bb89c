"""Topic ``specs``: what people want to run, and which workloads they want rebalanced."""

import msgspec

from events import shapes


class TemplateApplied(shapes.Event, frozen=True, kw_only=True):
    """A template as it is wanted now: the whole object.

    ``expects`` is the home version (offset + 1) of the last write that the writer saw, 0 to create only, and
    absent where the last write wins.
    """

    manifest: msgspec.Raw
    expects: shapes.Count | None = None


class TemplateDeleted(shapes.Event, frozen=True, kw_only=True):
    """A template that is not wanted any more; what runs of it is withdrawn everywhere."""

    template: shapes.WorkloadRef
    expects: shapes.Count | None = None


class RebalancerApplied(shapes.Event, frozen=True, kw_only=True):
    """A WorkloadRebalancer as it is wanted now: the whole object."""

    manifest: msgspec.Raw
    expects: shapes.Count | None = None


class RebalancerDeleted(shapes.Event, frozen=True, kw_only=True):
    """A WorkloadRebalancer that was deleted; what it moved stays."""

    name: str
    expects: shapes.Count | None = None


class TemplateStatusWritten(shapes.Event, frozen=True, kw_only=True):
    """The whole status of a template, as somebody beside the engine sees it; what members report is shown over it.

    ``managed_fields`` tell who wrote which fields of it; they decide nothing.
    """

    template: shapes.WorkloadRef
    status: shapes.Object
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None


class DeletionAllowed(shapes.Event, frozen=True, kw_only=True):
    """What a template left in a cluster until somebody decides may be deleted there: ``suppressDeletion`` is false.

    Without effect where nothing is left like that.
    """

    template: shapes.WorkloadRef
    cluster: str
