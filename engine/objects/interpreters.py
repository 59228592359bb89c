"""How an object of a custom kind is read, as one ReplicaInterpreter declares it (config.reballast.io/v1alpha1).

Every part is optional but the kind: where the replicas stand and what each of them needs, when an object is well, which
values of its status are put together over the clusters, what else it needs, and which of its fields are the member's.
Two sorts of paths: dotted names from the root (``spec.size``) for fields of the object, JSON paths for the status.
"""

from typing import Final, Literal

import msgspec
from msgspec import Struct

from engine.objects import policies

Aggregate = Literal["Sum", "Max", "First"]


class Target(Struct, frozen=True, kw_only=True, rename="camel"):
    """The kind that is read."""

    api_version: str
    kind: str


class Condition(Struct, frozen=True, kw_only=True, rename="camel"):
    """A condition of the status: its type, and the status that it has in an object which is well."""

    type: str
    status: str = "True"


class Health(Struct, frozen=True, kw_only=True, rename="camel"):
    """When an object is well: the text at a place of the status is one of these, or a condition stands so."""

    json_path: str = ""
    values: tuple[str, ...] = ()
    condition: Condition | None = None


class StatusField(Struct, frozen=True, kw_only=True, rename="camel"):
    """A value of the status, and what stands for it over all clusters: the sum, the largest, or that of the first."""

    json_path: str
    aggregate: Aggregate = "First"


class Dependency(Struct, frozen=True, kw_only=True, rename="camel"):
    """Objects of one kind that an object needs, by their names at a place of it."""

    api_version: str
    kind: str
    names_path: str


class Interpretation(Struct, frozen=True, kw_only=True, rename="camel"):
    """All that is declared of a kind."""

    target: Target
    replicas_path: str = ""
    requests_path: str = ""
    health: Health | None = None
    status_fields: tuple[StatusField, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    retained_fields: tuple[str, ...] = ()


class _Manifest(Struct, frozen=True):
    spec: Interpretation


_DECODER: Final = msgspec.json.Decoder(_Manifest)


def decode(manifest: msgspec.Raw | bytes) -> Interpretation:
    """The interpretation in a manifest; raises msgspec.ValidationError or msgspec.DecodeError for another shape."""
    return _DECODER.decode(policies.without_nulls(manifest)).spec


def health_path(health: Health) -> tuple[str, tuple[str, ...]]:
    """Where it shows whether an object is well, and the texts that say so."""
    if health.condition is None:
        return health.json_path, health.values
    return f'.conditions[?(@.type=="{health.condition.type}")].status', (health.condition.status,)
