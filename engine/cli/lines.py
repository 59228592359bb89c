"""Input of `reballast schedule`: one JSON object, typed, made into a fleet and a request.

The field names are those of the recorded vectors, which are Karmada's. Only a wrong type or shape is refused; whether a
placement makes sense is for the policies' validation.
"""

import datetime
from typing import Annotated

import msgspec

from engine.objects import clusters, placements, quantity
from engine.placement import fleet, requests, triggers

Replicas = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class ReplicaRequirements(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one replica asks for."""

    resource_request: dict[str, quantity.Quantity] = {}


class TargetCluster(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A cluster of the previous result; replicas are absent for what has none."""

    name: str
    replicas: Replicas = 0


class EvictionTask(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """A cluster that is being emptied."""

    from_cluster: str


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One of several pod templates; only their number counts."""

    name: str = ""


class Spec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The binding's spec, as far as scheduling reads it."""

    resource: requests.Resource
    replicas: Replicas = 0
    replica_requirements: ReplicaRequirements | None = None
    components: tuple[Component, ...] = ()
    clusters: tuple[TargetCluster, ...] = ()
    graceful_eviction_tasks: tuple[EvictionTask, ...] = ()
    placement: placements.Placement = placements.Placement()
    reschedule_triggered_at: datetime.datetime | None = None


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The binding's status, as far as scheduling reads it."""

    last_scheduled_time: datetime.datetime | None = None
    scheduler_observing_affinity_name: str = ""


class Input(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One question: clusters stay raw, so that lines with the same ones can share a fleet."""

    clusters: msgspec.Raw
    spec: Spec
    status: Status = Status()
    applied_placement: placements.Placement | None = None
    enable_empty_workload_propagation: bool = False


def read_fleet(raw: bytes) -> fleet.Fleet:
    """Build a fleet from a JSON list of Cluster objects.

    Raises `msgspec.ValidationError`, `msgspec.DecodeError` or `quantity.QuantityError` where it is malformed.
    """
    known = fleet.Fleet()
    for cluster in msgspec.json.decode(raw, type=list[clusters.ClusterManifest]):
        known.put(cluster)
    return known


def read_request(question: Input, known: fleet.Fleet) -> requests.Request:
    """Make the request of a question, its trigger included.

    Raises `quantity.QuantityError` where a request is malformed.
    """
    spec, status = question.spec, question.status
    needs = spec.replica_requirements
    request = requests.Request(
        resource=spec.resource,
        placement=spec.placement,
        replicas=spec.replicas,
        requests=None if needs is None else requests.parse_requests(needs.resource_request),
        components=len(spec.components),
        current=tuple((target.name, target.replicas) for target in spec.clusters),
        evicting=frozenset(task.from_cluster for task in spec.graceful_eviction_tasks),
        observed_affinity=status.scheduler_observing_affinity_name,
        fresh=triggers.is_fresh(_seconds(spec.reschedule_triggered_at), _seconds(status.last_scheduled_time)),
        empty_workload_propagation=question.enable_empty_workload_propagation,
    )
    why = triggers.trigger(request, question.applied_placement, known)
    return msgspec.structs.replace(request, trigger=why)


def _seconds(time: datetime.datetime | None) -> int | None:
    return None if time is None else int(time.timestamp())
