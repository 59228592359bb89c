"""A scenario: a random sequence of writes to one namespace; a seed always gives the same one."""

import random
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from msgspec import Struct

from events import keys
from events.json_values import Json, object_at
from tests.builders.manifests import manifest
from tests.clusters.comparison import custom_kinds, policies, rebalancers, templates

_BINDINGS: Final = "work.karmada.io/v1alpha2"
_ENDS_ALL: Final = 0.3
"""Share of scenarios whose namespace is deleted in the end."""

_EDITS_NAMESPACE: Final = 0.1
_SUSPENDS: Final = 0.1
_RECREATES: Final = 0.5
"""Share of deleted templates that are created again at once."""


class _Drawing(Protocol):
    """A module that draws objects of some kinds."""

    def edited(self, rng: random.Random, value: Json) -> Json:
        """Return an object after a random edit."""
        ...


class Write(Struct, frozen=True):
    """``verb`` is ``create``, ``update``, ``delete``, or ``recreate``: deleted and at once created again.

    Or it is ``patch``: a merge patch of an object that may not exist.
    """

    verb: str
    value: Json

    def __str__(self) -> str:
        return f"{self.verb} {self.value['kind']} {object_at(self.value, 'metadata')['name']}"


def namespace_of(seed: int) -> str:
    """Return the namespace of a scenario; objects without a namespace have it in their names."""
    return f"compared-{seed}"


def writes(seed: int) -> Iterator[Write]:
    """Yield the writes of a scenario: a template and a policy for it in either order, then any others.

    Some scenarios end with the deletion of their namespace; not those with protected templates, for which Karmada and
    Reballast differ by design.
    """
    rng = random.Random(seed)  # noqa: S311  # an example, not a secret
    namespace = namespace_of(seed)
    stored: dict[tuple[str, str], Json] = {}

    def created(value: Json) -> Iterator[Write]:
        if stored.setdefault(_key(value), value) is value:
            yield Write("create", value)

    first = templates.template(rng, namespace, 0)
    pair = [first, policies.propagation(rng, namespace, 0, [first])]
    rng.shuffle(pair)
    for value in pair:
        yield from created(value)
    for number in range(1, rng.randint(4, 12)):
        if rng.random() < _EDITS_NAMESPACE:
            yield Write("update", templates.namespace(rng, namespace))
        candidates = [value for value in stored.values() if _module_of(value) is templates]
        if candidates and rng.random() < _SUSPENDS:
            yield Write("patch", _suspension(rng, rng.choice(candidates)))
            continue
        if not stored or rng.random() < 0.5:
            yield from created(_drawn(rng, namespace, number, candidates))
            continue
        key = rng.choice(sorted(stored))
        if rng.random() < 0.2:
            # A deleted definition stays until its objects are deleted, too.
            may_return = _module_of(stored[key]) is templates and key[0] != custom_kinds.DEFINITION[1]
            is_recreated = may_return and rng.random() < _RECREATES
            yield Write("recreate", stored[key]) if is_recreated else Write("delete", stored.pop(key))
            continue
        old = stored[key]
        stored[key] = _module_of(old).edited(rng, old)
        yield Write("update", stored[key])
    if rng.random() < _ENDS_ALL and not any(templates.is_protected(value) for value in stored.values()):
        yield Write("delete", manifest("v1", "Namespace", namespace))


def _drawn(rng: random.Random, namespace: str, number: int, candidates: Sequence[Json]) -> Json:
    """Return a new template, or a policy or a rebalancer for some of the candidates."""
    match rng.choice(("template", "propagation", "override", "rebalancer")):
        case "template":
            return templates.template(rng, namespace, number)
        case "propagation":
            return policies.propagation(rng, namespace, number, candidates)
        case "rebalancer":
            return rebalancers.rebalancer(rng, namespace, number, candidates)
        case _:
            return policies.override(rng, namespace, number, candidates)


def _suspension(rng: random.Random, template: Json) -> Json:
    """Return a patch of the template's binding that suspends its scheduling, or ends that."""
    metadata = object_at(template, "metadata")
    namespace = str(metadata.get("namespace", ""))
    name = keys.binding_name(str(template["kind"]), str(metadata["name"]))
    suspension = {"scheduling": rng.choice((True, False, None))}
    kind = "ResourceBinding" if namespace else "ClusterResourceBinding"
    return manifest(_BINDINGS, kind, name, namespace, spec={"suspension": suspension})


def _key(value: Json) -> tuple[str, str]:
    return str(value["kind"]), str(object_at(value, "metadata")["name"])


def _module_of(value: Json) -> _Drawing:
    """Return the module that drew an object, and can edit it."""
    if value["kind"] == "WorkloadRebalancer":
        return rebalancers
    return policies if policies.is_policy(value) else templates
