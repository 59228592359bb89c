"""Topic ``policies``: the objects that every shard reads."""

import msgspec

from events import enums, keys, shapes


class PolicyApplied(shapes.Event, frozen=True, kw_only=True):
    """A PropagationPolicy or ClusterPropagationPolicy as it is wanted now: the whole object."""

    manifest: msgspec.Raw
    expects: shapes.Count | None = None


class PolicyDeleted(shapes.Event, frozen=True, kw_only=True):
    """A policy that is gone; what it placed keeps running."""

    policy: shapes.PolicyRef
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.object_key(self.policy.kind, self.policy.namespace, self.policy.name)


class NamespaceApplied(shapes.Event, frozen=True, kw_only=True):
    """A Namespace of the control plane: the whole object."""

    manifest: msgspec.Raw
    expects: shapes.Count | None = None


class NamespaceDeleted(shapes.Event, frozen=True, kw_only=True):
    """A Namespace that is gone."""

    name: str
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.object_key("Namespace", "", self.name)


class InterpreterApplied(shapes.Event, frozen=True, kw_only=True):
    """How a custom kind is read: a ReplicaInterpreter object (``config.reballast.io/v1alpha1``)."""

    manifest: msgspec.Raw
    expects: shapes.Count | None = None


class InterpreterDeleted(shapes.Event, frozen=True, kw_only=True):
    """An interpreter that is gone; the kind is read as one without replicas."""

    name: str
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.object_key("ReplicaInterpreter", "", self.name)


class ConfigurationApplied(shapes.Event, frozen=True, kw_only=True):
    """An object of the control plane that is kept as it is wanted, and never propagated: overrides, quotas, taints.

    The whole object. Override and taint policies affect decisions; the other kinds are stored only.
    """

    manifest: msgspec.Raw
    expects: shapes.Count | None = None


class ConfigurationDeleted(shapes.Event, frozen=True, kw_only=True):
    """Such an object that is gone.

    The deletion of an object that a ``ConfigurationApplied`` event created.
    """

    object: shapes.WorkloadRef
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.object_key(self.object.kind, self.object.namespace, self.object.name)


class ConfigurationStatusWritten(shapes.Event, frozen=True, kw_only=True):
    """The whole status of such an object, as a controller of somebody else sees it.

    Written by an external controller; replaces the previous status. ``managed_fields`` are the owners of its
    fields.
    """

    object: shapes.WorkloadRef
    status: shapes.Object
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.object_key(self.object.kind, self.object.namespace, self.object.name)


class PriorityClassDeclared(shapes.Event, frozen=True, kw_only=True):
    """What a PriorityClass says now: the shard of its template tells it to all others.

    The owner shard of a PriorityClass writes this event, so that all shards know the class. Bindings with a
    higher ``value`` are scheduled first. ``global_default`` applies the class to workloads that name none.
    With the ``preemption_policy`` Never its workloads do not preempt others.
    """

    name: str
    value: shapes.Whole
    global_default: bool = False
    preemption_policy: enums.PreemptionPolicy = enums.PreemptionPolicy.PREEMPT_LOWER_PRIORITY

    @property
    def record_key(self) -> str:
        return keys.object_key("PriorityClass", "", self.name)


class PriorityClassGone(shapes.Event, frozen=True, kw_only=True):
    """A PriorityClass that is there no more; what named it keeps the priority that it has.

    Written by the owner shard of the class after its deletion. Bindings that used the class keep their
    priority.
    """

    name: str

    @property
    def record_key(self) -> str:
        return keys.object_key("PriorityClass", "", self.name)
