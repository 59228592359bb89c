"""Read replica counts and health from an object's status. Pure.

The rules are those of Karmada's default interpreter. Kinds without a rule (Job, HorizontalPodAutoscaler,
custom resources) count as healthy once they are applied.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct, structs

from engine.agent.messages import ObjectState
from engine.objects import bindings, status_fields
from events import shapes, status_values
from events.json_values import Json, as_count, without_nulls
from events.kube_objects import KubeObject


def object_state(value: KubeObject, reading: shapes.Reading | None = None) -> ObjectState:
    """The state of an object; ``reading`` holds rules of the kind's interpreter, which override the built-in ones."""
    state = _built_in_state(value)
    kind = value.type_meta
    if kind in status_values.GENERATION_KINDS:
        state = structs.replace(
            state,
            generation=as_count(value.metadata.get("generation")),
            observed_generation=as_count(value.at("status", "observedGeneration")),
        )
    status = value.object_at("status")
    state = structs.replace(state, status=status_fields.whole(*kind, status, reading))
    if reading is None:
        return state
    return structs.replace(
        state,
        healthy=status_fields.is_healthy(value.document, reading, otherwise=state.healthy),
        values=status_fields.values(status, reading),
    )


class _Metadata(Struct, frozen=True):
    generation: int = 0


class _RollingUpdate(Struct, frozen=True):
    partition: int = 0


class _UpdateStrategy(Struct, frozen=True, rename="camel"):
    rolling_update: _RollingUpdate | None = None

    @property
    def partition(self) -> int:
        return self.rolling_update.partition if self.rolling_update else 0


class _Spec(Struct, frozen=True, rename="camel"):
    replicas: int = 1
    type: str = ""
    update_strategy: _UpdateStrategy = _UpdateStrategy()


class _Address(Struct, frozen=True):
    ip: str = ""
    hostname: str = ""


class _LoadBalancer(Struct, frozen=True):
    ingress: tuple[_Address, ...] = ()


class _Status(Struct, frozen=True, rename="camel"):
    """The status fields that the built-in rules read; each kind has some of them."""

    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0
    desired_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    number_ready: int = 0
    number_available: int = 0
    active: int = 0
    ready: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    phase: str = ""
    load_balancer: _LoadBalancer = _LoadBalancer()
    conditions: tuple[bindings.Condition, ...] = ()

    @property
    def is_reachable(self) -> bool:
        """Whether an external address has been assigned."""
        return any(entry.ip or entry.hostname for entry in self.load_balancer.ingress)

    @property
    def is_running(self) -> bool:
        """Whether a Pod is ready or has succeeded."""
        ready = any(condition.type == "Ready" and condition.status == "True" for condition in self.conditions)
        return self.phase == "Succeeded" or (self.phase == "Running" and ready)


class _BuiltIn(Struct, frozen=True):
    """The parts of an object that the built-in rules read."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def is_observed(self) -> bool:
        """Whether the status refers to the newest generation of the spec."""
        return self.status.observed_generation >= self.metadata.generation


def _built_in_state(value: KubeObject) -> ObjectState:
    rule = _RULES.get(value.type_meta)
    if rule is None:
        return _unknown(value.object_at("spec"), value.object_at("status"))
    read = _read(value)
    return ObjectState(healthy=False) if read is None else rule(read)


def _read(value: KubeObject) -> _BuiltIn | None:
    """Convert an object to the fields that the built-in rules read; None if one of them has an invalid type."""
    try:
        return msgspec.convert(value.document, _BuiltIn)
    except msgspec.ValidationError:
        pass
    try:
        # Null fields count as absent; they are rare, so they are removed only after the first conversion
        # failed.
        return msgspec.convert(without_nulls(value.document), _BuiltIn)
    except msgspec.ValidationError:
        return None


def _deployment(value: _BuiltIn) -> ObjectState:
    return _replicated(value, value.spec.replicas)


def _replica_set(value: _BuiltIn) -> ObjectState:
    status = value.status
    return ObjectState(
        replicas=status.replicas,
        updated=status.replicas,
        ready=status.ready_replicas,
        available=status.available_replicas,
        healthy=value.is_observed and status.available_replicas >= value.spec.replicas,
    )


def _job(value: _BuiltIn) -> ObjectState:
    active, ready = value.status.active, value.status.ready
    return ObjectState(replicas=active, updated=active, ready=ready, available=ready)


def _pod(value: _BuiltIn) -> ObjectState:
    well = value.status.is_running
    return ObjectState(replicas=1, updated=1, ready=int(well), available=int(well), healthy=well)


def _replicated(value: _BuiltIn, desired: int) -> ObjectState:
    status = value.status
    updated, available = status.updated_replicas, status.available_replicas
    return ObjectState(
        replicas=status.replicas,
        updated=updated,
        ready=status.ready_replicas,
        available=available,
        healthy=value.is_observed and updated >= desired and available >= updated,
    )


def _stateful(value: _BuiltIn) -> ObjectState:
    """State of a StatefulSet.

    Only pods with an ordinal of at least ``partition`` must be updated, but all replicas must be available.
    """
    desired = value.spec.replicas
    state = _replicated(value, desired - value.spec.update_strategy.partition)
    return structs.replace(state, healthy=state.healthy and state.available >= desired)


def _daemons(value: _BuiltIn) -> ObjectState:
    status = value.status
    desired, updated = status.desired_number_scheduled, status.updated_number_scheduled
    available = status.number_available
    return ObjectState(
        replicas=desired,
        updated=updated,
        ready=status.number_ready,
        available=available,
        healthy=value.is_observed and updated >= desired and available >= updated,
    )


_RULES: Final[dict[tuple[str, str], Callable[[_BuiltIn], ObjectState]]] = {
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "StatefulSet"): _stateful,
    ("apps/v1", "ReplicaSet"): _replica_set,
    ("apps/v1", "DaemonSet"): _daemons,
    ("batch/v1", "Job"): _job,
    ("v1", "Pod"): _pod,
    ("v1", "Service"): lambda value: ObjectState(
        healthy=value.spec.type != "LoadBalancer" or value.status.is_reachable
    ),
    ("networking.k8s.io/v1", "Ingress"): lambda value: ObjectState(healthy=value.status.is_reachable),
    ("v1", "PersistentVolumeClaim"): lambda value: ObjectState(healthy=value.status.phase == "Bound"),
    ("policy/v1", "PodDisruptionBudget"): lambda value: ObjectState(
        healthy=value.status.current_healthy >= value.status.desired_healthy
    ),
}


def _unknown(spec: Json, status: Json) -> ObjectState:
    """State of an object of an unknown kind: replica counts from the usual fields; always healthy."""
    if "replicas" not in spec and "replicas" not in status:
        return ObjectState()
    return ObjectState(
        replicas=as_count(status.get("replicas")),
        updated=as_count(status.get("updatedReplicas")),
        ready=as_count(status.get("readyReplicas")),
        available=as_count(status.get("availableReplicas", status.get("readyReplicas"))),
    )
