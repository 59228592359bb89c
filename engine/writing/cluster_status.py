"""Events for a written Cluster status, as agents report it: capacity, health, Kubernetes version, API kinds."""

import msgspec

from engine.domain.clusters import UNKNOWN
from engine.kubeapi.errors.status_objects import StatusCause, StatusDetails, StatusError
from engine.writing import cluster_changes
from engine.writing.mutations import Action, Edited, Mutated, Target
from events import clusters, shapes, times
from events.json_values import Json, as_object, list_at, object_at
from events.kube_objects import KubeObject
from events.validation import event_fields
from projections.clusters import Cluster
from projections.documents import field_owners
from projections.documents.clusters import cluster_document


def mutated(target: Target, cluster: Cluster, edited: Edited) -> Mutated:
    """The cluster with an edited status, and the events for the parts that differ from the current one.

    Raises StatusError: 400 if a value has the wrong type, 422 if it is invalid.
    """
    try:
        events = _events(target, cluster, edited.value)
    except ValueError as error:
        raise StatusError(400, "BadRequest", f"the status can't be read: {error}") from None
    for event in events:
        for fault in event_fields.cluster_event_faults(event):
            message = f'Cluster.cluster.karmada.io "{target.name}" is invalid: {fault.field}: {fault.reason}'
            cause: StatusCause = {
                "reason": "FieldValueInvalid",
                "message": fault.reason,
                "field": fault.field,
            }
            details: StatusDetails = {"name": target.name, "kind": "Cluster", "causes": [cause]}
            raise StatusError(422, "Invalid", message, details)
    # An event that writes the whole cluster comes last and changes the cluster's version; the version then shows
    # whether all events took effect. Without such an event the version may not change: treat the events as a report.
    is_report = bool(events) and not isinstance(events[-1], clusters.ClusterJoined)
    action = Action.CONFIGURED if events else Action.UNCHANGED
    return Mutated(
        action=action,
        value=edited.value,
        events=tuple(events),
        warnings=edited.warnings,
        is_report=is_report,
    )


def _events(target: Target, cluster: Cluster, desired: KubeObject) -> list[shapes.Event]:
    events: list[shapes.Event] = []
    before = cluster_document(cluster)
    if any(desired.at("status", name) for name in ("resourceSummary", "nodeSummary")):
        capacity = _capacity(target.name, desired)
        if capacity != _capacity(target.name, before):
            events.append(capacity)
    ready = _ready(cluster, desired)
    if ready is not None and ready != _ready(cluster, before):
        events.append(ready)
    reported = _conditions(target.name, desired)
    if reported != _conditions(target.name, before):
        events.append(reported)
    whole = before.with_fields({"metadata": desired.metadata})
    managed = cluster_document(cluster, managed=True)
    if _fields(desired) == _fields(managed):
        # A repeated report changes only the times of its field owners. Keep the stored times; otherwise each
        # heartbeat would write the cluster.
        whole = managed
    return [
        *events,
        *cluster_changes.events_of(target.name, cluster, cluster_changes.spec_of(whole, cluster, desired)),
    ]


def _fields(value: KubeObject) -> list[Json]:
    """Entries of ``managedFields`` without their times and without the engine's own."""
    return [
        {name: item for name, item in entry.items() if name != "time"}
        for entry in value.objects_at("metadata", "managedFields")
        if not field_owners.is_engine_entry(entry)
    ]


def _capacity(name: str, value: KubeObject) -> clusters.CapacityReported:
    summary = value.object_at("status", "resourceSummary")
    nodes = as_object(value.at("status", "nodeSummary"))
    amounts = {
        field: {
            resource: cluster_changes.canonical_quantity(amount)
            for resource, amount in object_at(summary, field).items()
        }
        for field in ("allocatable", "allocated", "allocating")
    }
    counted: Json = (
        {} if nodes is None else {"nodes": nodes.get("totalNum", 0), "nodesReady": nodes.get("readyNum", 0)}
    )
    modelings = list_at(summary, "allocatableModelings")
    report: Json = {"name": name, **amounts, "modelings": modelings, **counted}
    return msgspec.convert(report, clusters.CapacityReported)


def _conditions(name: str, value: KubeObject) -> clusters.ClusterConditionsReported:
    """The conditions of a cluster, except those that the engine derives."""
    conditions = value.objects_at("status", "conditions")
    return clusters.ClusterConditionsReported(
        name=name,
        conditions=tuple(
            _condition(condition)
            for condition in conditions
            if condition.get("type") not in clusters.DERIVED_CONDITIONS
        ),
    )


def _condition(condition: Json) -> clusters.ClusterCondition:
    changed = condition.get("lastTransitionTime")
    return clusters.ClusterCondition(
        type=str(condition.get("type", "")),
        status=str(condition.get("status", "")),
        reason=str(condition.get("reason", "")),
        message=str(condition.get("message", "")),
        last_transition_ms=times.from_text(changed) if isinstance(changed, str) else None,
    )


def _ready(cluster: Cluster, value: KubeObject) -> clusters.ClusterHealthChanged | None:
    """Return the condition Ready as a report, None without it; Unknown becomes ``silent``, as after a grace period."""
    condition = value.condition("Ready")
    if not condition:
        return None
    status = condition.get("status")
    silent = cluster.health if status == UNKNOWN else None
    return clusters.ClusterHealthChanged(
        name=cluster.name,
        ready=status == "True",
        silent=silent is not None,
        heard_ms=0 if silent is None else silent.heard_ms,
        reason=str(condition.get("reason", "")),
        message=str(condition.get("message", "")),
    )
