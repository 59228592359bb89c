"""The state of an existing Karmada, for a copy in another control plane; read from its API or an observer's log."""

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct, structs

from engine.agent.api_errors import ApiError, RefusedError
from engine.agent.discovery import Resource, group_kind, preferred
from engine.agent.kubeconfigs import Access, KubeconfigError
from engine.agent.member_api import MemberApi
from engine.cli import failures, output
from engine.domain import marks, namespaces
from engine.domain.bindings import DEFAULT_SCHEDULER, REBALLAST_SCHEDULER, SCHEDULERS
from engine.karmada import unsupported
from engine.log import port, reading
from engine.objects import bindings
from engine.objects.bindings import Binding
from engine.objects.policies import LAZY
from engine.observer import observation
from events import codec, imported_placements, keys, observations, shapes, topics
from events.json_values import Json, object_at
from events.kube_objects import KubeObject
from events.validation import known_kinds

KINDS: Final = (
    ("", "Namespace"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("cluster.karmada.io", "Cluster"),
    ("policy.karmada.io", "OverridePolicy"),
    ("policy.karmada.io", "ClusterOverridePolicy"),
    ("policy.karmada.io", "ClusterTaintPolicy"),
    ("policy.karmada.io", "PropagationPolicy"),
    ("policy.karmada.io", "ClusterPropagationPolicy"),
)
"""Groups and kinds that are copied, each after the kinds on which it depends; templates follow."""

_BINDINGS: Final = (("work.karmada.io", "ResourceBinding"), ("work.karmada.io", "ClusterResourceBinding"))
_DEFINITIONS: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_POLICIES: Final = KINDS[-2:]
POLICY_KINDS: Final = frozenset(kind for _, kind in _POLICIES)
_QUOTAS: Final = (known_kinds.POLICY_GROUP, "FederatedResourceQuota")
_UNLIMITED: Final = "their limits do not apply to the copy"
_KARMADA: Final = ".karmada.io"
_DERIVED: Final = frozenset({"Work", "WorkloadRebalancer"})
"""Karmada's kinds that are not copied: Works follow from other objects, and rebalancers have had their effect."""

_ROOT_AUTHORITY: Final = ("ConfigMap", "kube-root-ca.crt")
_API_SERVICE: Final = ("Service", ("default", "kubernetes"))
"""Objects that every Kubernetes API creates itself: the ConfigMap in each namespace, and the Service."""

SCHEDULER: Final = "schedulerName"
_ACTIVATION: Final = "activationPreference"
"""Field of a policy's spec; ``Lazy`` defers changes of the policy until a template changes."""

_METADATA_KEPT: Final = ("name", "namespace", "labels", "annotations")

NamespacedName = tuple[str, str]
"""Namespace and name of an object."""

_GroupKind = tuple[str, str]


class _BoundSpec(bindings.Spec, frozen=True, kw_only=True):
    placement: Json = {}

    @property
    def placement_json(self) -> bytes:
        """The placement as JSON; equal placements have equal bytes."""
        return msgspec.json.encode(self.placement, order="sorted")


class _Bound(Binding, frozen=True, kw_only=True):
    """A binding of the control plane, with its placement."""

    spec: _BoundSpec = _BoundSpec()

    @property
    def namespaced_name(self) -> NamespacedName:
        return self.metadata.namespace, self.metadata.name

    @property
    def template(self) -> tuple[_GroupKind, NamespacedName]:
        """Group and kind of the template, and its namespace and name."""
        resource = self.spec.resource
        return group_kind(resource.api_version, resource.kind), (resource.namespace, resource.name)


class Running(Struct, frozen=True):
    """A workload as a cluster runs it: all and ready replicas (for a Job: active pods), and whether it is healthy."""

    replicas: int
    ready: int
    healthy: bool


class State(Struct, frozen=True):
    """The objects of a control plane in the order of copying, its placements, and notes on what is not copied.

    ``running`` holds the last report of each workload, by cluster and by binding.
    """

    objects: list[KubeObject]
    placements: dict[NamespacedName, imported_placements.ImportedPlacement]
    running: dict[str, dict[NamespacedName, Running]]
    notes: list[str]


def of_api(access: Access) -> State:
    """Read a control plane from its API. Raises Failure."""
    remedy = "use a kubeconfig whose user can list its objects"
    with failures.convert((ApiError, KubeconfigError), remedy, where="Karmada's API"):
        return asyncio.run(_of_api(access))


async def _of_api(access: Access) -> State:
    async with contextlib.aclosing(MemberApi(access)) as api:
        served = preferred(await api.discover())
        if not served.keys() & set(_POLICIES):
            raise failures.Failure(
                f"{access.server} serves no policies of Karmada",
                "use the kubeconfig of Karmada's API server, not that of its host cluster",
            )
        fixed = (*KINDS, *_BINDINGS, _DEFINITIONS)
        objects_by_kind = {kind: await _listed(api, served.get(kind)) for kind in fixed}
        notes: list[str] = []
        for kind in sorted(
            _template_kinds(objects_by_kind, _bound(objects_by_kind)) - objects_by_kind.keys()
        ):
            objects_by_kind[kind] = await _listed_if_allowed(api, served.get(kind), notes)
        others = [
            resource
            for kind, resource in sorted(served.items())
            if kind not in objects_by_kind and _is_karmadas(resource)
        ]
        for resource in others:
            values = await _listed_if_allowed(api, resource, notes)
            notes += _omissions((resource.api_version, resource.kind), values)
    state = _state(objects_by_kind)
    return structs.replace(state, notes=state.notes + notes)


def _is_karmadas(resource: Resource) -> bool:
    """Whether a kind belongs to Karmada and is written by users."""
    group, kind = group_kind(resource.api_version, resource.kind)
    return resource.watched and group.endswith(_KARMADA) and kind not in _DERIVED


def _omissions(kind: tuple[str, str], values: Sequence[KubeObject]) -> list[str]:
    """Return the note about objects of a kind (API version and kind) that is not copied."""
    missing = _UNLIMITED if kind == _QUOTAS else unsupported.KINDS.get(kind, "")
    names = [keys.full_name(*value.key) for value in values]
    return _noted(f"{kind[1]} not copied: {{}}" + f": {missing}" * bool(missing), names)


async def _listed_if_allowed(api: MemberApi, resource: Resource | None, notes: list[str]) -> list[KubeObject]:
    """Return the objects of a kind. If the user may not list them, add a note and return no objects."""
    try:
        return await _listed(api, resource)
    except RefusedError as error:
        notes.append(f"{resource.kind if resource else ''} not copied: {error}")
        return []


async def of_log(log: port.NumberedLog, number: int | None = None) -> State | None:
    """Read the observed state of a control plane, the newest or as of a sequence number; None if there is none.

    Raises the log's errors.
    """
    newest: dict[str, bytes] = {}
    changes = observation.Changes()
    async for record in reading.of_partition(log, topics.OBSERVATIONS, 0):
        if number is not None and record.number > number:
            continue
        match codec.event_of(record):
            case observations.ObjectObserved() as seen:
                newest[changes.read(seen).record_key] = bytes(seen.manifest)
            case observations.ObjectVanished() as vanished:
                newest.pop(changes.read(vanished).record_key, None)
            case _:
                pass
    result: dict[_GroupKind, list[KubeObject]] = {}
    large: list[str] = []
    for manifest in newest.values():
        value = KubeObject.from_json(manifest)
        if observation.OMITTED in value.annotations:
            large.append(f"{value.kind} {keys.full_name(*value.key)}")
        else:
            result.setdefault(_group_kind(value), []).append(_without_digests(value))
    state = _state(result)
    notes = state.notes + _omissions(_QUOTAS, result.get(group_kind(*_QUOTAS), ()))
    notes += _noted("not copied, since observers omit such large content: {}", large)
    return structs.replace(state, notes=notes) if result else None


def clean(value: KubeObject) -> KubeObject:
    """Return an object without the fields, labels and annotations that its control plane owns."""
    metadata = {name: item for name, item in value.metadata.items() if name in _METADATA_KEPT}
    for name, owned in (("labels", marks.LABELS), ("annotations", marks.ANNOTATIONS)):
        texts = object_at(metadata.pop(name, None))
        kept = {
            text: item
            for text, item in texts.items()
            if text not in {*owned, *marks.CLAIMS, marks.APPLIED_PLACEMENT} - {marks.CONFLICT_RESOLUTION}
        }
        if kept:
            metadata[name] = kept
    return value.without_fields("status").with_fields({"metadata": metadata})


def placement_of(binding: Binding) -> imported_placements.ImportedPlacement:
    """Return a binding's clusters, affinity group and policy; a mere dependency of other bindings has no policy."""
    clusters = {target.name: target.replicas or 0 for target in binding.spec.clusters}
    affinity = binding.status.scheduler_observing_affinity_name
    policy = marks.claiming_policy(binding.metadata.annotations)
    return imported_placements.ImportedPlacement(clusters, affinity, policy)


def _bound(objects: Mapping[_GroupKind, Sequence[KubeObject]]) -> list[_Bound]:
    bound = (_readable(value) for kind in _BINDINGS for value in objects.get(kind, ()))
    return [binding for binding in bound if binding is not None]


def _readable(value: KubeObject) -> _Bound | None:
    """Read a binding; None if fields have other types than in Karmada."""
    try:
        return msgspec.convert(value.document, _Bound)
    except msgspec.ValidationError:
        return None


def _unreadable(objects: Mapping[_GroupKind, Sequence[KubeObject]]) -> list[str]:
    """Return a note about the bindings that cannot be read."""
    bound = [value for kind in _BINDINGS for value in objects.get(kind, ())]
    names = [keys.full_name(*value.key) for value in bound if _readable(value) is None]
    return _noted("placements not copied, since their bindings cannot be read: {}", names)


def _state(objects: Mapping[_GroupKind, Sequence[KubeObject]]) -> State:
    """Build the state from all objects of a control plane; ``objects`` has them by group and kind."""
    all_bound = _bound(objects)
    policies = [value for kind in _POLICIES for value in objects.get(kind, ())]
    lazy = {_reference(value) for value in policies if is_lazy(value)}
    placements = {binding.namespaced_name: _taken_over_placement(binding, lazy) for binding in all_bound}
    bound = {binding.template: binding.namespaced_name for binding in all_bound}
    kinds = _template_kinds(objects, all_bound)
    copied = [value for kind in KINDS if kind not in _POLICIES for value in objects.get(kind, ())]
    copied += [
        value
        for value in objects.get(_DEFINITIONS, ())
        if (value.text_at("spec", "group"), value.text_at("spec", "names", "kind")) in kinds
    ]
    waiting: list[KubeObject] = []
    templates: list[KubeObject] = []
    for kind in sorted(kinds - {*KINDS, _DEFINITIONS}):
        for value in objects.get(kind, ()):
            binding = bound.get((kind, value.key))
            if binding is not None:
                templates.append(_with_placement(value, placements[binding]))
            else:
                (waiting if marks.claiming_policy(value.annotations) in lazy else templates).append(value)
    # Templates that wait for a lazy policy come first: it would claim one that is written after it. Lazy policies mark
    # these templates before other policies, which claim unmarked templates at once, are written.
    copied += [*waiting, *sorted(policies, key=is_lazy, reverse=True), *templates]
    copied = [value for value in copied if not is_own(value)]
    deleted = [f"{value.kind} {keys.full_name(*value.key)}" for value in copied if value.is_ending]
    copied = [value for value in copied if not value.is_ending]
    notes = _notes(all_bound, lazy) + _noted("not copied, since they are being deleted: {}", deleted)
    return State(copied, placements, _running(all_bound), notes + _unreadable(objects))


def is_lazy(value: KubeObject) -> bool:
    """Whether an object is a policy that places existing templates only when they change."""
    return value.kind in POLICY_KINDS and value.at("spec", _ACTIVATION) == LAZY


def _reference(policy: KubeObject) -> shapes.PolicyRef:
    return shapes.PolicyRef(kind=policy.kind, name=policy.name, namespace=policy.namespace)


def _taken_over_placement(
    binding: _Bound, lazy: Collection[shapes.PolicyRef]
) -> imported_placements.ImportedPlacement:
    """Return a binding's placement; if its policy is lazy, with the placement rules that still apply to the binding."""
    taken = placement_of(binding)
    if taken.policy not in lazy or not binding.spec.placement:
        return taken
    return structs.replace(taken, placement=binding.spec.placement_json.decode())


def _noted(text: str, names: Sequence[str]) -> list[str]:
    """Return a list with one note about the first names; an empty list if there are no names."""
    return [text.format(output.joined(names))] if names else []


def _template_kinds(
    objects: Mapping[_GroupKind, Sequence[KubeObject]], bound: Iterable[_Bound]
) -> set[_GroupKind]:
    """Return the groups and kinds that policies select, and those of the templates of bindings."""
    kinds = {binding.template[0] for binding in bound}
    for kind in _POLICIES:
        for value in objects.get(kind, ()):
            selectors = map(KubeObject, value.objects_at("spec", "resourceSelectors"))
            kinds.update(map(_group_kind, selectors))
    return kinds


def _running(bound: Iterable[_Bound]) -> dict[str, dict[NamespacedName, Running]]:
    """Return the running workloads of each cluster, as Karmada aggregated them from the members' reports."""
    result: dict[str, dict[NamespacedName, Running]] = {}
    for binding in bound:
        for report in binding.status.aggregated_status:
            ready = report.ready or 0
            running = Running(
                report.count("replicas") or report.count("active") or 0, ready, report.health != "Unhealthy"
            )
            result.setdefault(report.cluster_name, {})[binding.namespaced_name] = running
    return result


def _notes(bound: Sequence[_Bound], lazy: Collection[shapes.PolicyRef]) -> list[str]:
    """Return notes on graceful evictions and on placements from older versions of policies: neither is copied."""
    evicting = [binding.key for binding in bound if binding.spec.graceful_eviction_tasks]
    placements: dict[shapes.PolicyRef | None, set[bytes]] = {}
    for binding in bound:
        policy = marks.claiming_policy(binding.metadata.annotations)
        placements.setdefault(policy, set()).add(binding.spec.placement_json)
    notes = [
        f"{ref.kind} {ref.name}: templates with an older placement of this policy keep their clusters until the next "
        "decision about them, which uses the new placement"
        for ref, texts in placements.items()
        if ref is not None and len(texts) > 1 and ref not in lazy
    ]
    return _noted("graceful evictions are not continued here: {}", evicting) + notes


def scheduler_of(policy: KubeObject | None) -> str:
    """Return the scheduler that a policy names; the default scheduler if it names none or ``policy`` is None."""
    return (policy.text_at("spec", SCHEDULER) if policy is not None else "") or DEFAULT_SCHEDULER


def taken_over(state: State, scheduler: str) -> State:
    """Return the state in which policies for this scheduler name the engine's own scheduler instead."""
    objects = [
        value.with_fields({"spec": {**value.object_at("spec"), SCHEDULER: REBALLAST_SCHEDULER}})
        if value.kind in POLICY_KINDS and scheduler_of(value) == scheduler
        else value
        for value in state.objects
    ]
    return structs.replace(state, objects=objects)


def undecided(objects: Iterable[KubeObject]) -> list[str]:
    """Return a note for each other scheduler, with the policies whose workloads the engine leaves to it."""
    named: dict[str, list[str]] = {}
    for value in objects:
        if value.kind in POLICY_KINDS and scheduler_of(value) not in SCHEDULERS:
            named.setdefault(scheduler_of(value), []).append(keys.full_name(*value.key))
    return [
        f"workloads of {output.joined(sorted(names))} are not scheduled here and keep their clusters, because their "
        f"policies name the scheduler {scheduler}; to schedule them here, import with --scheduler {scheduler}"
        for scheduler, names in sorted(named.items())
    ]


async def _listed(api: MemberApi, resource: Resource | None) -> list[KubeObject]:
    return [] if resource is None else (await api.list(resource)).items


def _with_placement(value: KubeObject, placement: imported_placements.ImportedPlacement) -> KubeObject:
    if not placement.clusters and placement.policy is None:
        return value
    added = {imported_placements.ANNOTATION: msgspec.json.encode(placement).decode()}
    return value.with_metadata({"annotations": {**value.annotations, **added}})


def _without_digests(value: KubeObject) -> KubeObject:
    """Return a Secret without its values, since an observer has only digests of them; any other object unchanged."""
    return value.without_fields(*observation.SECRET_FIELDS) if value.kind == "Secret" else value


def _group_kind(value: KubeObject) -> _GroupKind:
    return group_kind(value.api_version, value.kind)


def is_own(value: KubeObject) -> bool:
    """Whether an object belongs to the control plane itself, so that it is not copied as a template."""
    namespace, name = value.key
    if value.kind == "Namespace":
        return name == "default" or namespaces.is_reserved(name)
    kind = value.kind
    return (
        namespaces.is_reserved(namespace)
        or (kind, name) == _ROOT_AUTHORITY
        or (kind, value.key) == _API_SERVICE
    )
