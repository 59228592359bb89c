"""ReplicaInterpreter objects (config.reballast.io/v1alpha1), which declare how a custom kind is read.

All parts but the kind are optional: paths of replicas, requests and pod specs, the health rule, status values to
aggregate over the clusters, dependencies, and fields retained by members. Paths of replicas,
requests and retained fields are dotted names from the root (``spec.size``); all other paths are JSON paths.
"""

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Final, Literal

import msgspec
from msgspec import Struct

from engine.objects import policies
from events import enums, json_paths, kube_objects, shapes

Aggregate = Literal["Sum", "Max", "First", "Last"]

JUDGED_KINDS: Final = frozenset(
    {
        ("v1", "PersistentVolumeClaim"),
        ("v1", "Service"),
        ("networking.k8s.io/v1", "Ingress"),
        ("policy/v1", "PodDisruptionBudget"),
    }
)
"""Kinds without replicas (API version, kind) for which Karmada's default interpreter has a health rule."""


class Target(Struct, frozen=True, kw_only=True, rename="camel"):
    """The custom kind that a ReplicaInterpreter describes."""

    api_version: str
    kind: str


class Condition(Struct, frozen=True, kw_only=True, rename="camel"):
    """A condition with its status and possible reasons in a healthy object; empty ``reasons`` allow any."""

    type: str
    status: str = "True"
    reasons: tuple[str, ...] = ()


class Check(Struct, frozen=True, kw_only=True, rename="camel"):
    """A requirement on a healthy object: a condition, or a status value as in ``shapes.HealthRule``."""

    json_path: str = ""
    operator: enums.HealthOperator = enums.HealthOperator.IN
    values: tuple[str, ...] = ()
    at_least: str = ""
    condition: Condition | None = None


class Alternative(Struct, frozen=True, kw_only=True, rename="camel"):
    """Checks that an object must pass together."""

    all_of: tuple[Check, ...]


class Health(Check, frozen=True, kw_only=True, rename="camel"):
    """The health rule of a kind: an object must pass this check.

    If ``any_of`` is set, this check is ignored: the object must pass all checks of one alternative instead.
    """

    any_of: tuple[Alternative, ...] = ()


class StatusField(Struct, frozen=True, kw_only=True, rename="camel"):
    """A status value, and how it is aggregated over all clusters: sum, maximum, first or last cluster's value."""

    json_path: str
    aggregate: Aggregate = "First"


class Dependency(Struct, frozen=True, kw_only=True, rename="camel"):
    """Objects of one kind that an object depends on; ``names_path`` is the path of their names."""

    api_version: str
    kind: str
    names_path: str


class Interpretation(Struct, frozen=True, kw_only=True, rename="camel"):
    """The spec of a ReplicaInterpreter.

    ``default_replicas`` is the number of replicas of an object without a count at ``replicas_path``.
    ``pod_spec_paths`` are JSON paths of pod specs. The objects to which these refer are dependencies. The first pod
    spec has the requests of a replica, unless there is a ``requests_path``. With ``whole_status`` members also report
    their whole statuses: an object in one cluster has the status of that cluster, an object in several clusters has
    their merged conditions.
    """

    target: Target
    replicas_path: str = ""
    default_replicas: int | None = None
    requests_path: str = ""
    pod_spec_paths: tuple[str, ...] = ()
    health: Health | None = None
    status_fields: tuple[StatusField, ...] = ()
    whole_status: bool = False
    dependencies: tuple[Dependency, ...] = ()
    retained_fields: tuple[str, ...] = ()


class _Manifest(Struct, frozen=True):
    spec: Interpretation


_DECODER: Final = msgspec.json.Decoder(_Manifest)


def decode(manifest: msgspec.Raw | bytes) -> Interpretation:
    """Decode a manifest; raises msgspec.ValidationError or msgspec.DecodeError if it is invalid."""
    return kube_objects.decoded(lambda raw: _DECODER.decode(policies.without_nulls(raw)).spec, manifest)


@cache
def built_in() -> dict[tuple[str, str], Interpretation]:
    """Return the built-in interpreters of custom kinds of other projects, by (API version, kind)."""
    text = resources.files("engine.objects").joinpath("built_in_interpreters.yaml").read_bytes()
    specs = msgspec.yaml.decode(text, type=list[Interpretation])
    return {(spec.target.api_version, spec.target.kind): spec for spec in specs}


def pod_specs(value: object, spec: Interpretation) -> Iterator[object]:
    """Yield the pod specs of an object, in the order of their paths."""
    for path in spec.pod_spec_paths:
        yield from json_paths.values_at(value, path)


def health_rules(health: Health) -> tuple[tuple[shapes.HealthRule, ...], ...]:
    """Return lists of rules; an object is healthy if it meets all rules of at least one list."""
    alternatives = health.any_of or (Alternative(all_of=(health,)),)
    return tuple(
        tuple(rule for check in alternative.all_of for rule in _rules(check)) for alternative in alternatives
    )


def _rules(check: Check) -> Iterator[shapes.HealthRule]:
    condition = check.condition
    if condition is None:
        yield shapes.HealthRule(
            path=check.json_path, values=check.values, operator=check.operator, at_least=check.at_least
        )
        return
    path = f'.conditions[?(@.type=="{condition.type}")]'
    yield shapes.HealthRule(path=f"{path}.status", values=(condition.status,))
    if condition.reasons:
        yield shapes.HealthRule(path=f"{path}.reason", values=condition.reasons)
