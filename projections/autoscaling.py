"""Queries for autoscaling in member clusters: targets of propagated autoscalers, and templates that members scale."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from engine.domain import marks
from events import keys, vocabulary
from events.json_values import at, decoded, object_at
from events.kube_objects import KubeObject
from projections import bindings, changes
from projections.placements import stored as stored_placement
from projections.port import Rows, Value

SCALER: Final = "HorizontalPodAutoscaler"
_GROUP: Final = "autoscaling"
_SCALERS: Final = f"""
SELECT o.id, o.api_version, o.namespace, o.uid, o.manifest, b.body FROM objects o JOIN bindings b USING (id)
WHERE o.kind = '{SCALER}'
"""  # noqa: S608  # constants
_TEMPLATES: Final = """
SELECT o.api_version, o.kind, o.namespace, o.name, o.number, o.uid, o.labels, o.manifest, b.body
FROM objects o LEFT JOIN bindings b USING (id)
"""


class Span(NamedTuple):
    """The records after one number, up to and including another."""

    after: int
    end: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The range of these records in the table of changes."""
        return changes.bounds(*self)


class ScaleTarget(NamedTuple):
    """The object that an autoscaler scales, in any version of its API group."""

    group: str
    kind: str
    namespace: str
    name: str


class Template(Struct, frozen=True, kw_only=True):
    """A template and its label ``resourcetemplate.karmada.io/retain-replicas`` (empty: none).

    ``decided`` is the number of replicas that autoscalers in member clusters have decided: the sum of the reported
    replicas. It is None unless the placement divides replicas, the template's newest generation is scheduled, and each
    of the template's clusters runs replicas.
    """

    api_version: str
    target: ScaleTarget
    number: int
    label: str
    value: KubeObject
    decided: int | None = None

    @property
    def replicas(self) -> object:
        """The number of replicas in the template."""
        return self.value.object_at("spec").get("replicas", 1)


def scalers(rows: Rows, span: Span | None) -> dict[int, ScaleTarget]:
    """Return the target of each propagated autoscaler, by the autoscaler's key id.

    With ``span``, return only the targets of autoscalers that changed in it.
    """
    within = f" AND o.id IN ({changes.IN_RANGE})" if span else ""
    result: dict[int, ScaleTarget] = {}
    for key_id, api_version, namespace, uid, manifest, body in rows.select(
        _SCALERS + within, span.bounds if span else ()
    ):
        binding = bindings.decode(body)
        if keys.group_of(api_version) == _GROUP and binding.claim is not None and binding.template_uid == uid:
            result[key_id] = scaled(manifest, namespace)
    return result


def scaled(manifest: bytes, namespace: str) -> ScaleTarget:
    """Return the target that the manifest of an autoscaler in ``namespace`` names."""
    reference = object_at(decoded(manifest), "spec", "scaleTargetRef")
    group, kind, name = (str(reference.get(field, "")) for field in ("apiVersion", "kind", "name"))
    return ScaleTarget(keys.group_of(group), kind, namespace, name)


def changed(rows: Rows, span: Span) -> set[int]:
    """Return the key ids of autoscalers that changed or were deleted in a span."""
    kind = changes.kind_of(f"{_GROUP}/v2", SCALER)
    return {key_id for (key_id,) in rows.select(f"{changes.IN_RANGE} AND kind = ?", [*span.bounds, kind])}


def retaining(rows: Rows, span: Span | None) -> Iterator[Template]:
    """Yield the templates with the label ``retain-replicas``.

    With ``span``, yield only templates that changed in it or whose bindings changed in it.
    """
    within = f" AND o.id IN ({changes.IN_RANGE})" if span else ""
    where: list[Value] = [f'"{marks.RETAIN_REPLICAS}"', *(span.bounds if span else ())]
    yield from _templates(rows, f"WHERE instr(o.labels, ?){within}", where)


def of_kinds(rows: Rows, span: Span, kinds: Iterable[str]) -> Iterator[Template]:
    """Yield the templates of some kinds that changed in a span."""
    for kind in kinds:
        yield from _templates(
            rows, f"WHERE o.kind = ? AND o.id IN ({changes.IN_RANGE})", [kind, *span.bounds]
        )


def of_target(rows: Rows, target: ScaleTarget) -> Iterator[Template]:
    """Yield the template that is a scale target, if it exists."""
    where: list[Value] = [target.kind, target.namespace, target.name]
    for template in _templates(rows, "WHERE o.kind = ? AND o.namespace = ? AND o.name = ?", where):
        if template.target == target:
            yield template


def _templates(rows: Rows, condition: str, where: list[Value]) -> Iterator[Template]:
    for api_version, kind, namespace, name, number, uid, labels, manifest, body in rows.select(
        _TEMPLATES + condition, where
    ):
        value = KubeObject(decoded(manifest))
        binding = bindings.decode(body) if body else None
        is_own = binding is not None and binding.template_uid == uid
        yield Template(
            api_version=api_version,
            target=ScaleTarget(keys.group_of(api_version), kind, namespace, name),
            number=number,
            label=msgspec.json.decode(labels or b"{}", type=dict[str, str]).get(marks.RETAIN_REPLICAS, ""),
            value=value,
            decided=_decided(rows, binding, value) if binding is not None and is_own else None,
        )


def _decided(rows: Rows, binding: bindings.Binding, value: KubeObject) -> int | None:
    """Return the sum of the replicas that the members' autoscalers decided.

    None if the placement does not divide replicas, or a member has not reported replicas for the current schedule yet.
    """
    members = binding.status.members if binding.status else ()
    is_settled = (
        binding.replicas == value.object_at("spec").get("replicas", 1)
        and binding.scheduled_generation == binding.generation
        and {name for name, _ in binding.clusters} == {member.cluster for member in members}
    )
    # An autoscaler sets at least one replica, so a member with 0 has not reported its replicas yet.
    if not is_settled or not members or not all(member.applied and member.replicas for member in members):
        return None
    placement = decoded(stored_placement(rows, binding.placement) or b"{}")
    if at(placement, "replicaScheduling", "replicaSchedulingType") != vocabulary.DIVIDED:
        return None
    return sum(member.replicas for member in members)
