"""ResourceBindings and ClusterResourceBindings (work.karmada.io/v1alpha2): the fields that clients show or copy.

Decoding ignores all other fields. The statuses that clusters report stay JSON, since each kind has other fields.
"""

import msgspec
from msgspec import Struct

from engine.objects import policies
from events import job_statuses, keys
from events.kube_objects import KubeObject


class Metadata(Struct, frozen=True, kw_only=True, rename="camel"):
    """Name, labels, annotations and creation time of an object; cluster-scoped kinds have no namespace.

    The creation time is empty if the event that created the object has no time.
    """

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str | None = None


class Template(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A reference to the template of a binding (``spec.resource``)."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""


class Target(Struct, frozen=True, kw_only=True):
    """An assigned cluster; ``replicas`` is None for kinds without replicas."""

    name: str
    replicas: int | None = None


class Dependent(Struct, frozen=True, kw_only=True):
    """Another binding, which depends on this binding's object; its clusters get the object too."""

    namespace: str = ""
    name: str = ""
    clusters: tuple[Target, ...] = ()


class EvictionTask(Struct, frozen=True, kw_only=True, rename="camel"):
    """A graceful eviction that has not ended: its cluster keeps the workload until others run it."""

    from_cluster: str = ""
    reason: str = ""


class Spec(Struct, frozen=True, kw_only=True, rename="camel"):
    """The template, its replicas and clusters, its dependents, evictions and suspension."""

    resource: Template = Template()
    replicas: int | None = None
    clusters: tuple[Target, ...] = ()
    required_by: tuple[Dependent, ...] = ()
    graceful_eviction_tasks: tuple[EvictionTask, ...] = ()
    suspension: policies.Suspension = policies.Suspension()


class Condition(Struct, frozen=True, kw_only=True, rename="camel"):
    """An entry of ``status.conditions``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class Report(Struct, frozen=True, kw_only=True, rename="camel"):
    """The state of the workload in one cluster; ``status`` has the fields of the workload's kind."""

    cluster_name: str = ""
    applied: bool = False
    applied_message: str = ""
    health: str = ""
    status: dict[str, object] = {}

    def count(self, name: str) -> int | None:
        """Return the integer in the status field with this name; None if there is none."""
        value = self.status.get(name)
        return value if isinstance(value, int) else None

    @property
    def ready(self) -> int | None:
        """The number of ready replicas or, for a Job, of active pods; None if the status has neither."""
        ready = self.count("readyReplicas")
        return self.count("active") if ready is None else ready

    @property
    def finished(self) -> str:
        """The condition that ended a Job: ``Complete`` or ``Failed``; empty if there is none."""
        condition = KubeObject({"status": self.status}).condition
        ended = (name for name in job_statuses.ENDS if condition(name).get("status") == job_statuses.TRUE)
        return next(ended, "")


class Status(Struct, frozen=True, kw_only=True, rename="camel"):
    """Conditions, the observed affinity group, and the reports of the clusters."""

    conditions: tuple[Condition, ...] = ()
    scheduler_observing_affinity_name: str = ""
    aggregated_status: tuple[Report, ...] = ()

    def condition(self, kind: str) -> Condition:
        """Return the condition of a type; an empty one if there is none."""
        return next((condition for condition in self.conditions if condition.type == kind), Condition())


class Binding(Struct, frozen=True, kw_only=True):
    """A binding, namespaced or cluster-scoped."""

    kind: str = ""
    metadata: Metadata = Metadata()
    spec: Spec = Spec()
    status: Status = Status()

    @property
    def targets(self) -> dict[str, Target]:
        """Targets by cluster name: the assigned clusters, then those of other bindings that depend on this one."""
        result = {target.name: target for target in self.spec.clusters}
        for dependent in self.spec.required_by:
            for target in dependent.clusters:
                result.setdefault(target.name, target)
        return result

    @property
    def key(self) -> str:
        """Namespace and name."""
        return keys.full_name(self.metadata.namespace, self.metadata.name)


def of(value: KubeObject) -> Binding:
    """Read a binding; raises msgspec.ValidationError if it is invalid."""
    return msgspec.convert(value.document, Binding)
