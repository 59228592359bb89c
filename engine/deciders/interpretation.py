"""How deciders and members read objects: the status fields of built-in kinds, and interpreters of custom kinds.

For built-in kinds, the status fields other than replicas, and their aggregation, are those of Karmada's default
interpreter. Fields that a status omits (most statuses omit zeros) are not reported.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from engine.deciders.fact_changes import Change, InterpreterChanged
from engine.domain import replica_fields
from engine.objects import interpreters
from events import job_statuses, shapes, status_values

_Kind = tuple[str, str]

_FURTHER: Final[dict[_Kind, tuple[interpreters.StatusField, ...]]] = {
    ("apps/v1", "StatefulSet"): (
        interpreters.StatusField(json_path=".currentRevision"),
        interpreters.StatusField(json_path=".updateRevision"),
    ),
    ("batch/v1", "Job"): (interpreters.StatusField(json_path=job_statuses.STARTED),),
}

_FIELDS: Final[dict[_Kind, tuple[interpreters.StatusField, ...]]] = {
    kind: (
        *(interpreters.StatusField(json_path=path, aggregate="Sum") for path in paths),
        *_FURTHER.get(kind, ()),
    )
    for kind, paths in status_values.COUNTS.items()
}
"""Status fields of kinds of Kubernetes that the engine aggregates, by kind."""

_BALANCED: Final = (status_values.ADDRESSES, status_values.HOST_NAMES)

_PROJECTED: Final[dict[_Kind, tuple[str, ...]]] = {
    ("batch/v1", "Job"): (job_statuses.COMPLETE, job_statuses.COMPLETED, job_statuses.FAILED),
    ("batch/v1", "CronJob"): (
        status_values.ACTIVE,
        status_values.LAST_SCHEDULED,
        status_values.LAST_SUCCESSFUL,
    ),
    ("networking.k8s.io/v1", "Ingress"): _BALANCED,
    ("v1", "PersistentVolume"): (status_values.PHASE,),
    ("v1", "PersistentVolumeClaim"): (status_values.PHASE,),
    ("v1", "Pod"): (status_values.CONTAINERS_READY, status_values.PHASE),
    ("v1", "Service"): _BALANCED,
}
"""Paths of the status fields that members report for the projections, which aggregate them; by kind."""


class Interpreter(Struct, frozen=True):
    """An interpreter of a custom kind: its spec, and in ``reading`` the rules for members."""

    name: str
    spec: interpreters.Interpretation
    reading: shapes.Reading | None

    @property
    def kind(self) -> _Kind:
        """API version and name of the kind."""
        return self.spec.target.api_version, self.spec.target.kind


def _reading(spec: interpreters.Interpretation) -> shapes.Reading | None:
    """Return how members read objects of the kind, in addition to the built-in rules; None if these suffice."""
    alternatives = () if spec.health is None else interpreters.health_rules(spec.health)
    health = None
    match alternatives:
        case ((rule,),):
            # Record a single rule in ``health``, as earlier releases did, so that recorded readings stay the same.
            health, alternatives = rule, ()
        case _:
            pass
    reading = shapes.Reading(
        values=tuple(sorted({field.json_path for field in spec.status_fields})),
        health=health,
        alternatives=alternatives,
        retained=spec.retained_fields,
        whole=spec.whole_status,
        replicas="" if replica_fields.is_default(spec.replicas_path) else spec.replicas_path,
    )
    return None if reading == shapes.Reading() else reading


def _of_kubernetes(kind: _Kind) -> Interpreter:
    """Return the interpreter of a Kubernetes kind: status fields only, since code determines replicas and health."""
    fields = _FIELDS.get(kind, ())
    paths = {*(field.json_path for field in fields), *_PROJECTED.get(kind, ())}
    spec = interpreters.Interpretation(
        target=interpreters.Target(api_version=kind[0], kind=kind[1]), status_fields=fields
    )
    return Interpreter("", spec, shapes.Reading(values=tuple(sorted(paths))))


_BUILT_IN: Final = {
    **{kind: _of_kubernetes(kind) for kind in (*_FIELDS, *_PROJECTED)},
    **{kind: Interpreter("", spec, _reading(spec)) for kind, spec in interpreters.built_in().items()},
}
"""Interpreters of kinds that no ReplicaInterpreter describes."""


class Interpreters:
    """The interpreters that ReplicaInterpreters declare, in the order of their last writes.

    Of several interpreters for one kind, the one that was written last is in use.
    """

    def __init__(self, declared: Iterable[Interpreter] = ()) -> None:
        self._by_name = {interpreter.name: interpreter for interpreter in declared}
        self._in_use = {interpreter.kind: interpreter for interpreter in self._by_name.values()}

    def __iter__(self) -> Iterator[Interpreter]:
        return iter(self._by_name.values())

    def get(self, api_version: str, kind: str) -> Interpreter | None:
        """Return the interpreter in use for a kind; None if the kind has none."""
        key = api_version, kind
        return self._in_use.get(key) or _BUILT_IN.get(key)

    def put(self, name: str, raw: msgspec.Raw) -> list[Change]:
        """Store the interpreter of the ReplicaInterpreter ``name``, replacing its previous one; return the changes."""
        changes = self.drop(name)
        spec = interpreters.decode(raw)
        new = Interpreter(name, spec, _reading(spec))
        self._by_name[name] = self._in_use[new.kind] = new
        return [*changes, InterpreterChanged(*new.kind)]

    def drop(self, name: str) -> list[Change]:
        """Remove the interpreter of the ReplicaInterpreter ``name``, if there is one; return the changes."""
        dropped = self._by_name.pop(name, None)
        if dropped is None:
            return []
        kind = dropped.kind
        if self._in_use[kind] is not dropped:
            return []
        del self._in_use[kind]
        for other in self._by_name.values():
            if other.kind == kind:
                self._in_use[kind] = other
        return [InterpreterChanged(*kind)]
