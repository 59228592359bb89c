"""Topic ``policies``: the objects that every shard reads."""

from events import enums, keys, shapes, topics


@shapes.recorded("policy-applied", topics.POLICIES)
class PolicyApplied(shapes.ObjectApplied, frozen=True, kw_only=True):
    """A PropagationPolicy or ClusterPropagationPolicy, the whole object."""

    route = "policy"


@shapes.recorded("policy-deleted", topics.POLICIES)
class PolicyDeleted(shapes.ObjectDeleted, frozen=True, kw_only=True):
    """The deletion of a policy; the workloads that it placed keep running."""

    policy: shapes.PolicyRef
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return self.policy.object_key


@shapes.recorded("namespace-applied", topics.POLICIES)
class NamespaceApplied(shapes.ObjectApplied, frozen=True, kw_only=True):
    """A Namespace of the control plane, the whole object."""

    route = "namespace"


@shapes.recorded("namespace-deleted", topics.POLICIES)
class NamespaceDeleted(shapes.ObjectDeleted, frozen=True, kw_only=True):
    """The deletion of a Namespace."""

    name: str
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.object_key("Namespace", "", self.name)


@shapes.recorded("interpreter-applied", topics.POLICIES)
class InterpreterApplied(shapes.ObjectApplied, frozen=True, kw_only=True):
    """A ReplicaInterpreter (``config.reballast.io/v1alpha1``), which declares how to read a custom kind."""

    route = "interpreter"


@shapes.recorded("interpreter-deleted", topics.POLICIES)
class InterpreterDeleted(shapes.ObjectDeleted, frozen=True, kw_only=True):
    """The deletion of a ReplicaInterpreter.

    The kind that it targets is then read by the latest remaining ReplicaInterpreter of this kind, else by the
    built-in interpreter; without either, as a kind without replicas.
    """

    name: str
    expects: shapes.Count | None = None

    @property
    def record_key(self) -> str:
        return keys.object_key("ReplicaInterpreter", "", self.name)


class ConfigurationEvent(shapes.Event, frozen=True, kw_only=True):
    """Base of the events about an object that a ``ConfigurationApplied`` event created."""

    object: shapes.WorkloadRef

    @property
    def record_key(self) -> str:
        return self.object.object_key


@shapes.recorded("configuration-applied", topics.POLICIES)
class ConfigurationApplied(shapes.ObjectApplied, frozen=True, kw_only=True):
    """An object of the control plane that is not propagated, such as an override or taint policy: the whole object.

    Override and taint policies affect decisions; the other kinds are stored only.
    """

    route = "configuration"


@shapes.recorded("configuration-deleted", topics.POLICIES)
class ConfigurationDeleted(ConfigurationEvent, shapes.ObjectDeleted, frozen=True, kw_only=True):
    """The deletion of an object that a ``ConfigurationApplied`` event created."""

    expects: shapes.Count | None = None


@shapes.recorded("configuration-status-written", topics.POLICIES)
class ConfigurationStatusWritten(ConfigurationEvent, frozen=True, kw_only=True):
    """The whole status of an object of a ``ConfigurationApplied`` event, written by an external controller.

    ``managed_fields`` are the owners of the status fields.
    """

    status: shapes.Object
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None


class PriorityClassEvent(shapes.Event, frozen=True, kw_only=True):
    """Base of the events about a PriorityClass; the owner shard of its template writes them."""

    name: str

    @property
    def record_key(self) -> str:
        return keys.object_key("PriorityClass", "", self.name)


@shapes.recorded("priority-class-declared", topics.POLICIES)
class PriorityClassDeclared(PriorityClassEvent, frozen=True, kw_only=True):
    """A PriorityClass, which the owner shard of its template declares to all shards.

    Bindings with a higher ``value`` are scheduled first. ``global_default`` applies the class to workloads that name
    none. With the ``preemption_policy`` Never its workloads do not preempt others.
    """

    value: shapes.Whole
    global_default: bool = False
    preemption_policy: enums.PreemptionPolicy = enums.PreemptionPolicy.PREEMPT_LOWER_PRIORITY


@shapes.recorded("priority-class-gone", topics.POLICIES)
class PriorityClassGone(PriorityClassEvent, frozen=True, kw_only=True):
    """The deletion of a PriorityClass; bindings that used the class keep their priority."""
