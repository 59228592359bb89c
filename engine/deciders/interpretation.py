"""Interpreters of custom kinds: how the deciders and the members read objects of these kinds."""

import msgspec
from msgspec import Struct

from engine.deciders.fact_changes import Change, InterpreterChanged
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


Interpreters = dict[tuple[str, str], Interpreter]
"""Interpreters by apiVersion and kind."""


def put(known: Interpreters, name: str, raw: msgspec.Raw) -> list[Change]:
    """Replace the interpreter that a ReplicaInterpreter of this name declares."""
    changes = drop(known, name)
    new = _declared(name, interpreters.decode(raw))
    known[new.api_version, new.kind] = new
    return [*changes, InterpreterChanged(new.api_version, new.kind)]


def drop(known: Interpreters, name: str) -> list[Change]:
    """Remove the interpreter that a ReplicaInterpreter of this name declared, if it did."""
    dropped = [kind for kind, interpreter in known.items() if interpreter.name == name]
    for kind in dropped:
        del known[kind]
    return [InterpreterChanged(*kind) for kind in dropped]


def _declared(name: str, spec: interpreters.Interpretation) -> Interpreter:
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
    """Return the rules that members need to read the kind; None if the built-in rules suffice."""
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
