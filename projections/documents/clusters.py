"""Rendering of clusters as Cluster objects (``cluster.karmada.io/v1alpha1``), and of works for the query API."""

from collections.abc import Iterable
from typing import Final, TypedDict

import msgspec
from msgspec import UNSET, Struct, UnsetType

from engine.domain.clusters import Spec
from events import clusters as events
from events import keys, shapes, times
from events.kube_fields import Condition, ManagedFieldsEntry, ObjectMeta, condition
from events.kube_objects import KubeObject
from events.validation import known_kinds
from projections.clusters import Cluster
from projections.documents import field_owners
from projections.documents.objects import identity, instant
from projections.works import Work

API_VERSION: Final = "cluster.karmada.io/v1alpha1"
FINALIZER: Final = "karmada.io/cluster-controller"
"""Finalizer that keeps a deleted Cluster until all its works are removed."""


class _Resource(TypedDict):
    kind: str
    name: str


class ApiEnablement(TypedDict):
    """The kinds that a cluster serves in one version of an API group."""

    groupVersion: str
    resources: list[_Resource]


class _SecretReference(TypedDict):
    namespace: str
    name: str


class _Taint(TypedDict, total=False):
    key: str
    value: str
    effect: str
    timeAdded: str


class _GradeCount(TypedDict):
    grade: int
    count: int


class _ResourceSummary(TypedDict, total=False):
    allocatable: dict[str, str]
    allocated: dict[str, str]
    allocating: dict[str, str]
    allocatableModelings: list[_GradeCount]


class _NodeSummary(TypedDict):
    totalNum: int
    readyNum: int


class _Status(TypedDict, total=False):
    apiEnablements: list[ApiEnablement]
    kubernetesVersion: str
    resourceSummary: _ResourceSummary
    nodeSummary: _NodeSummary
    conditions: list[Condition]


class _TemplateAt(Struct, frozen=True, gc=False):
    """Position and digest of the record with a work's template."""

    shard: int
    offset: int
    digest: str


class _Version(Struct, frozen=True, gc=False):
    """The term and the step of a work's decision."""

    term: int
    step: int


class ShownWork(Struct, frozen=True, kw_only=True, rename="camel"):
    """A work as the query API shows it."""

    cluster: str
    binding: str
    name: str
    resource: shapes.WorkloadRef
    replicas: int | UnsetType = UNSET
    suspended: bool
    template: _TemplateAt
    version: _Version
    resource_version: str


def cluster_document(cluster: Cluster, *, managed: bool = False) -> KubeObject:
    """Return the cluster as an object, without fields that were never reported; ``managed`` adds ``managedFields``."""
    spec, status = cluster.spec, _status(cluster)
    fields = {
        "syncMode": spec.sync_mode,
        "apiEndpoint": spec.api_endpoint,
        "id": spec.id or cluster.head.uid,
        "proxyURL": spec.proxy_url,
        "secretRef": _reference(spec.secret_ref),
        "impersonatorSecretRef": _reference(spec.impersonator_secret_ref),
        "provider": spec.provider,
        "region": spec.region,
        "zones": list(spec.zones),
        "taints": [_taint(taint) for taint in spec.taints],
        # Encode and decode to get lists, which patches and the write path need instead of tuples.
        "resourceModels": msgspec.json.decode(msgspec.json.encode(spec.models_in_use)),
    }
    metadata = _metadata(cluster)
    if managed:
        metadata["managedFields"] = _all_managed_fields(spec, status)
    return KubeObject(
        {
            "apiVersion": API_VERSION,
            "kind": "Cluster",
            "metadata": metadata,
            "spec": {name: value for name, value in fields.items() if value},
            "status": status,
        }
    )


def _metadata(cluster: Cluster) -> ObjectMeta:
    head, spec = cluster.head, cluster.spec
    metadata: ObjectMeta = {
        "name": cluster.name,
        **identity(head.uid, head.generation, head.created_ms, cluster.number),
        "finalizers": [FINALIZER],
    }
    if cluster.leaving_ms is not None:
        metadata["deletionTimestamp"] = times.to_seconds_text(cluster.leaving_ms)
        metadata["deletionGracePeriodSeconds"] = 0
    if spec.labels:
        metadata["labels"] = spec.labels
    if spec.annotations:
        metadata["annotations"] = spec.annotations
    return metadata


def enablements(apis: Iterable[events.ApiKind]) -> list[ApiEnablement]:
    """Return the kinds that a cluster serves as ``apiEnablements`` of its status."""
    return [
        {
            "groupVersion": api.group_version,
            "resources": [
                {"kind": kind, "name": name} for kind, name in zip(api.kinds, plurals(api), strict=True)
            ],
        }
        for api in apis
    ]


def plurals(api: events.ApiKind) -> tuple[str, ...]:
    """Return the plural names of the kinds: the recorded ones, or else names derived from the kinds."""
    if len(api.names) == len(api.kinds):
        return api.names
    return tuple(known_kinds.plural_of(api.group_version, kind) for kind in api.kinds)


def shown_work(key: str, cluster: str, work: Work) -> ShownWork:
    """Return a work for the query API."""
    return ShownWork(
        cluster=cluster,
        binding=key,
        name=keys.binding_name(work.template.kind, work.template.name),
        resource=work.template,
        replicas=UNSET if work.replicas is None else work.replicas,
        suspended=work.suspended,
        template=_TemplateAt(work.shard, work.offset, work.digest),
        version=_Version(work.term, work.step),
        resource_version=str(work.number),
    )


def _all_managed_fields(spec: Spec, status: _Status) -> list[ManagedFieldsEntry]:
    """Return ``managedFields``: the clients' entries, and the engine's entry for status fields that no client owns."""
    managed = field_owners.entries(spec.managed_fields)
    taken = field_owners.status_fields(managed)
    engine_fields = {name: value for name, value in status.items() if name not in taken}
    if engine_fields:
        managed.append(field_owners.of_status(API_VERSION, engine_fields))
    return managed


def _reference(reference: events.SecretRef | None) -> _SecretReference | None:
    return None if reference is None else {"namespace": reference.namespace, "name": reference.name}


def _taint(taint: events.Taint) -> _Taint:
    shown: _Taint = {"key": taint.key}
    if taint.value:
        shown["value"] = taint.value
    shown["effect"] = taint.effect
    if added := instant(taint.time_added_ms or 0):
        shown["timeAdded"] = added
    return shown


def _status(cluster: Cluster) -> _Status:
    status: _Status = {"apiEnablements": enablements(cluster.spec.apis)}
    if cluster.spec.kubernetes_version:
        status["kubernetesVersion"] = cluster.spec.kubernetes_version
    if cluster.capacity is not None:
        status["resourceSummary"] = _summary(cluster.capacity)
        if cluster.capacity.nodes is not None:
            status["nodeSummary"] = {
                "totalNum": cluster.capacity.nodes,
                "readyNum": cluster.capacity.nodes_ready,
            }
    conditions: list[Condition] = []
    health = cluster.health
    if health is not None:
        since = instant(health.since_ms)
        conditions.append(condition("Ready", health.status, health.reason, health.message, since))
        conditions.append(_enablements_condition(cluster))
    conditions += [_condition(reported) for reported in cluster.conditions]
    if conditions:
        status["conditions"] = conditions
    return status


def _condition(reported: events.ClusterCondition) -> Condition:
    since = instant(reported.last_transition_ms or 0)
    return condition(reported.type, reported.status, reported.reason, reported.message, since)


def _enablements_condition(cluster: Cluster) -> Condition:
    """Return the condition CompleteAPIEnablements: False if the cluster's served kinds are unknown."""
    is_known = bool(cluster.spec.apis)
    reason = "Complete" if is_known else "Empty"
    message = f"collected {reason.lower()} APIEnablements from the cluster"
    return condition(
        "CompleteAPIEnablements", str(is_known), reason, message, instant(cluster.head.created_ms)
    )


def _summary(capacity: events.CapacityReported) -> _ResourceSummary:
    summary: _ResourceSummary = {}
    if capacity.allocatable:
        summary["allocatable"] = capacity.allocatable
    if capacity.allocated:
        summary["allocated"] = capacity.allocated
    if capacity.allocating:
        summary["allocating"] = capacity.allocating
    if capacity.modelings:
        summary["allocatableModelings"] = [
            {"grade": modeling.grade, "count": modeling.count} for modeling in capacity.modelings
        ]
    return summary
