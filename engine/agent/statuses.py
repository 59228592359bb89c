"""Interpretation of an object's status: replicas by state, and health. Pure.

The rules are those of Karmada's default interpreter. Kinds without a rule (Job, HorizontalPodAutoscaler,
custom resources) count as healthy once they are applied.
"""

from msgspec import Struct, structs

from engine.objects import status_fields
from events import shapes, status_values
from events.json_values import Json, as_count, as_text, at, object_at, objects_at


class ObjectState(Struct, frozen=True, kw_only=True):
    """Replicas by state, health, the status values that an interpreter asks for or the whole status, and generations.

    ``generation`` and ``observed_generation`` are 0 for kinds whose reported status has no generation.
    """

    replicas: int = 0
    updated: int = 0
    ready: int = 0
    available: int = 0
    healthy: bool = True
    values: dict[str, str] = {}
    generation: int = 0
    observed_generation: int = 0
    status: str = ""


def object_state(value: Json, reading: shapes.Reading | None = None) -> ObjectState:
    """The state of an object; ``reading`` holds rules of the kind's interpreter, which override the built-in ones."""
    state = _built_in_state(value)
    kind = as_text(value.get("apiVersion")), as_text(value.get("kind"))
    if kind in status_values.GENERATION_KINDS:
        state = structs.replace(
            state,
            generation=as_count(at(value, "metadata", "generation")),
            observed_generation=as_count(at(value, "status", "observedGeneration")),
        )
    status = object_at(value, "status")
    state = structs.replace(state, status=status_fields.whole(*kind, status, reading))
    if reading is None:
        return state
    return structs.replace(
        state,
        healthy=status_fields.is_well(status, reading, otherwise=state.healthy),
        values=status_fields.values(status, reading),
    )


def _built_in_state(value: Json) -> ObjectState:
    status, spec = object_at(value, "status"), object_at(value, "spec")
    match as_text(value.get("apiVersion")), as_text(value.get("kind")):
        case "apps/v1", "Deployment":
            return _replicated(value, status, _wanted(spec))
        case "apps/v1", "StatefulSet":
            return _stateful(value, status, spec)
        case "apps/v1", "ReplicaSet":
            available = as_count(status.get("availableReplicas"))
            return ObjectState(
                replicas=as_count(status.get("replicas")),
                updated=as_count(status.get("replicas")),
                ready=as_count(status.get("readyReplicas")),
                available=available,
                healthy=_is_observed(value, status) and available >= _wanted(spec),
            )
        case "apps/v1", "DaemonSet":
            return _daemons(value, status)
        case "batch/v1", "Job":
            return _job(status)
        case "v1", "Pod":
            well = _is_well(status)
            return ObjectState(replicas=1, updated=1, ready=int(well), available=int(well), healthy=well)
        case _ if (well := _health(value, spec, status)) is not None:
            return ObjectState(healthy=well)
        case _:
            return _unknown(spec, status)


def _job(status: Json) -> ObjectState:
    active = as_count(status.get("active"))
    ready = as_count(status.get("ready"))
    return ObjectState(replicas=active, updated=active, ready=ready, available=ready)


def _health(value: Json, spec: Json, status: Json) -> bool | None:
    """Whether an object of a kind without replicas is healthy; None for kinds without a rule."""
    match as_text(value.get("apiVersion")), as_text(value.get("kind")):
        case "v1", "Service":
            return spec.get("type") != "LoadBalancer" or _is_reachable(status)
        case "networking.k8s.io/v1", "Ingress":
            return _is_reachable(status)
        case "v1", "PersistentVolumeClaim":
            return status.get("phase") == "Bound"
        case "policy/v1", "PodDisruptionBudget":
            return as_count(status.get("currentHealthy")) >= as_count(status.get("desiredHealthy"))
        case _:
            return None


def _replicated(value: Json, status: Json, desired: int) -> ObjectState:
    updated, available = as_count(status.get("updatedReplicas")), as_count(status.get("availableReplicas"))
    return ObjectState(
        replicas=as_count(status.get("replicas")),
        updated=updated,
        ready=as_count(status.get("readyReplicas")),
        available=available,
        healthy=_is_observed(value, status) and updated >= desired and available >= updated,
    )


def _stateful(value: Json, status: Json, spec: Json) -> ObjectState:
    """A StatefulSet with a partition updates only the ordinals from there on; all replicas must be available."""
    desired = _wanted(spec)
    partition = as_count(at(spec, "updateStrategy", "rollingUpdate", "partition"))
    state = _replicated(value, status, desired - partition)
    return structs.replace(state, healthy=state.healthy and state.available >= desired)


def _daemons(value: Json, status: Json) -> ObjectState:
    desired = as_count(status.get("desiredNumberScheduled"))
    updated, available = (
        as_count(status.get("updatedNumberScheduled")),
        as_count(status.get("numberAvailable")),
    )
    return ObjectState(
        replicas=desired,
        updated=updated,
        ready=as_count(status.get("numberReady")),
        available=available,
        healthy=_is_observed(value, status) and updated >= desired and available >= updated,
    )


def _unknown(spec: Json, status: Json) -> ObjectState:
    """Counts of an unknown kind, by the usual field names; always healthy."""
    if "replicas" not in spec and "replicas" not in status:
        return ObjectState()
    return ObjectState(
        replicas=as_count(status.get("replicas")),
        updated=as_count(status.get("updatedReplicas")),
        ready=as_count(status.get("readyReplicas")),
        available=as_count(status.get("availableReplicas", status.get("readyReplicas"))),
    )


def _wanted(spec: Json) -> int:
    return as_count(spec["replicas"]) if "replicas" in spec else 1


def _is_reachable(status: Json) -> bool:
    """Whether an external address has been assigned."""
    ingress = objects_at(status, "loadBalancer", "ingress")
    return any(entry.get("ip") or entry.get("hostname") for entry in ingress)


def _is_observed(value: Json, status: Json) -> bool:
    """Whether the status refers to the newest generation of the spec."""
    return as_count(status.get("observedGeneration")) >= as_count(at(value, "metadata", "generation"))


def _is_well(status: Json) -> bool:
    if status.get("phase") == "Succeeded":
        return True
    ready = any(_is_true(condition, "Ready") for condition in objects_at(status, "conditions"))
    return status.get("phase") == "Running" and ready


def _is_true(condition: Json, kind: str) -> bool:
    return condition.get("type") == kind and condition.get("status") == "True"
