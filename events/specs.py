"""Topic ``specs``: templates and rebalancers."""

from events import keys, shapes, topics


class TemplateEvent(shapes.Event, frozen=True, kw_only=True):
    """Base of the events about a stored template."""

    template: shapes.WorkloadRef

    @property
    def record_key(self) -> str:
        return self.template.binding_key


@shapes.recorded("template-applied", topics.SPECS)
class TemplateApplied(shapes.ObjectApplied, frozen=True, kw_only=True):
    """A template, the whole object.

    ``expects`` is the write version (offset + 1) of the last write that the writer has seen, 0 to create
    only, and absent if the last write wins.
    """

    route = "template"


@shapes.recorded("template-deleted", topics.SPECS)
class TemplateDeleted(TemplateEvent, shapes.ObjectDeleted, frozen=True, kw_only=True):
    """The deletion of a template; all its works are removed.

    ``orphans``: its workloads, and those of its dependencies, keep running in their clusters.
    """

    expects: shapes.Count | None = None
    orphans: bool = False


@shapes.recorded("rebalancer-applied", topics.SPECS)
class RebalancerApplied(shapes.ObjectApplied, frozen=True, kw_only=True):
    """A WorkloadRebalancer, the whole object."""

    route = "rebalancer"


@shapes.recorded("rebalancer-deleted", topics.SPECS)
class RebalancerDeleted(shapes.ObjectDeleted, frozen=True, kw_only=True):
    """The deletion of a WorkloadRebalancer; the workloads that it moved stay where they are."""

    name: str
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.rebalancer_key(self.name)


@shapes.recorded("template-status-written", topics.SPECS)
class TemplateStatusWritten(TemplateEvent, frozen=True, kw_only=True):
    """The whole status of a template, written by an external client.

    Fields aggregated from members' reports override it when the object is rendered. ``managed_fields`` are the owners
    of the status fields; they have no influence on decisions.
    """

    status: shapes.Object
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None


@shapes.recorded("suspension-written", topics.SPECS)
class SuspensionWritten(TemplateEvent, frozen=True, kw_only=True):
    """A client suspends, or resumes, the scheduling of a template's binding, or the dispatching of its works.

    It applies in addition to the policy's suspension, until a client writes another one or the template is deleted.
    A field that is None keeps its previous value.
    """

    scheduling: bool | None = None
    dispatching: bool | None = None


@shapes.recorded("deletion-allowed", topics.SPECS)
class DeletionAllowed(TemplateEvent, frozen=True, kw_only=True):
    """Permission to delete the workload that an eviction with ``suppressDeletion`` kept in a cluster.

    It has no effect if no such eviction of the template is pending in the cluster.
    """

    cluster: str
