"""Interpreters of custom kinds: how the deciders and the members read objects of these kinds."""

from msgspec import Struct

from engine.objects import interpreters, workloads
from events import shapes


class Interpreter(Struct, frozen=True):
    """How to read a custom kind: dotted paths from the root for replicas and requests, and its ``reading``."""

    name: str
    api_version: str
    kind: str
    replicas_path: str
    requests_path: str = ""
    reading: shapes.Reading | None = None
    status_fields: tuple[interpreters.StatusField, ...] = ()
    dependencies: tuple[interpreters.Dependency, ...] = ()


def interpreter(name: str, spec: interpreters.Interpretation) -> Interpreter:
    """Return the interpreter that a ReplicaInterpreter declares."""
    return Interpreter(
        name,
        spec.target.api_version,
        spec.target.kind,
        spec.replicas_path,
        spec.requests_path,
        _reading(spec),
        spec.status_fields,
        spec.dependencies,
    )


def _reading(spec: interpreters.Interpretation) -> shapes.Reading | None:
    """Return what members must know to read the kind; None if the built-in rules suffice."""
    health = None
    if spec.health is not None:
        path, values = interpreters.health_path(spec.health)
        health = shapes.HealthRule(path=path, values=values)
    reading = shapes.Reading(
        values=tuple(sorted({field.json_path for field in spec.status_fields})),
        health=health,
        retained=spec.retained_fields,
        replicas="" if workloads.is_default_path(spec.replicas_path) else spec.replicas_path,
    )
    return None if reading == shapes.Reading() else reading
