"""Parse JSON into fleets and scheduling requests: lines of `reballast schedule`, objects of another control plane.

The input of the scheduler is a binding with its clusters. Field names are Karmada's, as in the recorded vectors. Only
wrong types are refused; policy validation is not repeated here.
"""

import datetime as dt
import re
from typing import Annotated, Final

import msgspec

from engine.kubeapi.values import quantity
from engine.objects import clusters, placements
from engine.placement import fleet, requests, triggers

Time = Annotated[dt.datetime, msgspec.Meta(tz=True)]
Identity = str | int | msgspec.UnsetType | None
Replicas = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class ReplicaRequirements(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Resource requests of one replica."""

    resource_request: dict[str, quantity.Quantity] = {}


class TargetCluster(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A cluster of the previous result; replicas are absent for kinds without replicas."""

    name: str
    replicas: Replicas = 0


class EvictionTask(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """An eviction of the workload from a cluster."""

    from_cluster: str


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One of several pod templates; only their number is used."""

    name: str = ""


class Spec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields of a binding's spec that scheduling reads."""

    resource: requests.Resource
    replicas: Replicas = 0
    replica_requirements: ReplicaRequirements | None = None
    components: tuple[Component, ...] = ()
    clusters: tuple[TargetCluster, ...] = ()
    graceful_eviction_tasks: tuple[EvictionTask, ...] = ()
    placement: placements.Placement = placements.Placement()
    reschedule_triggered_at: Time | None = None


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields of a binding's status that scheduling reads."""

    last_scheduled_time: Time | None = None
    scheduler_observing_affinity_name: str = ""


class Input(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A binding, and ``clusters``, which stay JSON so that lines with equal clusters can share a fleet."""

    clusters: msgspec.Raw
    spec: Spec
    status: Status = Status()
    applied_placement: placements.Placement | None = None
    enable_empty_workload_propagation: bool = False


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The object of a line: its id, and ``input`` if the line is a recorded case, which nests the binding there."""

    id: Identity = msgspec.UNSET
    input: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class UnreadableError(ValueError):
    """Malformed input of the scheduler: path of the field, and reason."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


def located(error: msgspec.ValidationError, within: str = "") -> UnreadableError:
    """Convert a decoding error to one that names the field; ``within`` is the path of the decoded part in the line."""
    match = _AT.match(str(error))
    if match is None:
        return UnreadableError(within, str(error))
    return UnreadableError((within + match["field"]).lstrip("."), match["reason"])


_AT: Final = re.compile(r"^(?P<reason>.*) - at `\$(?P<field>.*)`$", re.DOTALL)
_ENVELOPES: Final = msgspec.json.Decoder(Envelope)
_INPUTS: Final = msgspec.json.Decoder(Input)
_CLUSTERS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_CLUSTER: Final = msgspec.json.Decoder(clusters.ClusterManifest)


def read_envelope(line: bytes) -> Envelope:
    """Decode the outer object of a line.

    Raises `msgspec.ValidationError` or `msgspec.DecodeError` if it is malformed.
    """
    return _ENVELOPES.decode(line)


def read_input(envelope: Envelope, line: bytes) -> Input:
    """Decode the input in a line, which is the line itself or its ``input``.

    Raises `msgspec.ValidationError` or `msgspec.DecodeError` if it is malformed.
    """
    return _INPUTS.decode(line if isinstance(envelope.input, msgspec.UnsetType) else envelope.input)


def read_fleet(raw: bytes) -> fleet.Fleet:
    """Build a fleet from a JSON list of Cluster objects.

    Raises `UnreadableError` if it is malformed or has more clusters than a fleet holds.
    """
    known = fleet.Fleet()
    try:
        manifests = _CLUSTERS.decode(raw)
    except msgspec.ValidationError as error:
        raise located(error, "clusters") from None
    for number, manifest in enumerate(manifests):
        try:
            known.put(_CLUSTER.decode(manifest))
        except msgspec.ValidationError as error:
            raise located(error, f"clusters[{number}]") from None
        except (quantity.QuantityError, fleet.FleetFullError) as error:
            raise UnreadableError(f"clusters[{number}]", str(error)) from None
    return known


def read_cluster(manifest: bytes) -> clusters.ClusterManifest:
    """Decode a Cluster object. Raises `msgspec.MsgspecError` if it is malformed."""
    return _CLUSTER.decode(manifest)


def read_request(scheduling_input: Input, known: fleet.Fleet) -> requests.Request:
    """Build the scheduling request, including its trigger.

    Raises `UnreadableError` if a resource request is malformed.
    """
    spec, status = scheduling_input.spec, scheduling_input.status
    needs = spec.replica_requirements
    try:
        resources = None if needs is None else requests.parse_requests(needs.resource_request)
    except quantity.QuantityError as error:
        raise UnreadableError("spec.replicaRequirements.resourceRequest", str(error)) from None
    request = requests.Request(
        resource=spec.resource,
        placement=spec.placement,
        replicas=spec.replicas,
        requests=resources,
        components=len(spec.components),
        current=tuple((target.name, target.replicas) for target in spec.clusters),
        evicting=frozenset(task.from_cluster for task in spec.graceful_eviction_tasks),
        observed_affinity=status.scheduler_observing_affinity_name,
        fresh=triggers.is_fresh(_seconds(spec.reschedule_triggered_at), _seconds(status.last_scheduled_time)),
        empty_workload_propagation=scheduling_input.enable_empty_workload_propagation,
    )
    trigger = triggers.trigger(request, scheduling_input.applied_placement, known)
    return msgspec.structs.replace(request, trigger=trigger)


def _seconds(time: dt.datetime | None) -> int | None:
    return None if time is None else int(time.timestamp())


def read_time(text: str) -> dt.datetime | None:
    """Parse a time of the API; None if the text is empty. Raises `msgspec.ValidationError` if it is malformed."""
    return msgspec.convert(text, Time) if text else None


def read_placement(text: str) -> placements.Placement:
    """Decode a placement from JSON. Raises `msgspec.ValidationError` or `msgspec.DecodeError` if it is malformed."""
    return _PLACEMENT.decode(text)


_PLACEMENT: Final = msgspec.json.Decoder(placements.Placement)
