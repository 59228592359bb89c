"""Topic ``policies``: the objects that every shard reads."""

import msgspec

from events import enums, keys, shapes


class PolicyApplied(shapes.Event, frozen=True, kw_only=True):
    """A PropagationPolicy or ClusterPropagationPolicy, the whole object."""

    manifest: msgspec.Raw
    expects: shapes.Count | None = None


class PolicyDeleted(shapes.Event, frozen=True, kw_only=True):
    """The deletion of a policy; the workloads that it placed keep running."""

    policy: shapes.PolicyRef
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return self.policy.object_key


class NamespaceApplied(shapes.Event, frozen=True, kw_only=True):
    """A Namespace of the control plane, the whole object."""

    manifest: msgspec.Raw
    expects: shapes.Count | None = None


class NamespaceDeleted(shapes.Event, frozen=True, kw_only=True):
    """The deletion of a Namespace."""

    name: str
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.object_key("Namespace", "", self.name)


class InterpreterApplied(shapes.Event, frozen=True, kw_only=True):
    """A ReplicaInterpreter (``config.reballast.io/v1alpha1``), which declares how to read a custom kind."""

    manifest: msgspec.Raw
    expects: shapes.Count | None = None


class InterpreterDeleted(shapes.Event, frozen=True, kw_only=True):
    """The deletion of a ReplicaInterpreter; its kind is read as one without replicas."""

    name: str
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.object_key("ReplicaInterpreter", "", self.name)


class ConfigurationApplied(shapes.Event, frozen=True, kw_only=True):
    """An object of the control plane that is not propagated, such as an override or taint policy: the whole object.

    Override and taint policies affect decisions; the other kinds are stored only.
    """

    manifest: msgspec.Raw
    expects: shapes.Count | None = None


class ConfigurationDeleted(shapes.Event, frozen=True, kw_only=True):
    """The deletion of an object that a ``ConfigurationApplied`` event created."""

    object: shapes.WorkloadRef
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return self.object.object_key


class ConfigurationStatusWritten(shapes.Event, frozen=True, kw_only=True):
    """The whole status of an object of a ``ConfigurationApplied`` event, written by an external controller.

    ``managed_fields`` are the owners of the status fields.
    """

    object: shapes.WorkloadRef
    status: shapes.Object
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return self.object.object_key


class PriorityClassDeclared(shapes.Event, frozen=True, kw_only=True):
    """A PriorityClass, which the owner shard of its template declares to all shards.

    Bindings with a higher ``value`` are scheduled first. ``global_default`` applies the class to workloads that name
    none. With the ``preemption_policy`` Never its workloads do not preempt others.
    """

    name: str
    value: shapes.Whole
    global_default: bool = False
    preemption_policy: enums.PreemptionPolicy = enums.PreemptionPolicy.PREEMPT_LOWER_PRIORITY

    @property
    def record_key(self) -> str:
        return keys.object_key("PriorityClass", "", self.name)


class PriorityClassGone(shapes.Event, frozen=True, kw_only=True):
    """The deletion of a PriorityClass; bindings that used the class keep their priority.

    The owner shard of the class writes it.
    """

    name: str

    @property
    def record_key(self) -> str:
        return keys.object_key("PriorityClass", "", self.name)
