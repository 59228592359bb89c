"""Rendering of clusters as Cluster objects (``cluster.karmada.io/v1alpha1``), and of works for the query API."""

from collections.abc import Iterable
from typing import Final, cast

import msgspec

from engine.domain.clusters import DEFAULT_MODELS, Spec
from events import clusters as events
from events import keys, times
from events.json_values import Json
from events.validation import known_kinds
from projections.clusters import Cluster, ReportedCapacity
from projections.documents import field_owners
from projections.documents.objects import identity, instant
from projections.works import Work

API_VERSION: Final = "cluster.karmada.io/v1alpha1"
FINALIZER: Final = "karmada.io/cluster-controller"
"""Keeps a deleted Cluster until all its works are removed."""


def cluster_document(cluster: Cluster, *, managed: bool = False) -> Json:
    """Return the cluster as an object, without fields that were never reported; ``managed`` adds ``managedFields``."""
    head, spec, status = cluster.head, cluster.spec, _status(cluster)
    fields: Json = {
        "syncMode": spec.sync_mode,
        "apiEndpoint": spec.api_endpoint,
        "id": spec.id or head.uid,
        "proxyURL": spec.proxy_url,
        "secretRef": _reference(spec.secret_ref),
        "impersonatorSecretRef": _reference(spec.impersonator_secret_ref),
        "provider": spec.provider,
        "region": spec.region,
        "zones": list(spec.zones),
        "taints": [_taint(taint) for taint in spec.taints],
        "resourceModels": msgspec.to_builtins(shown_models(spec)),
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "Cluster",
        "metadata": {
            "name": cluster.name,
            **identity(head.uid, head.generation, head.created_ms, cluster.number),
            "finalizers": [FINALIZER],
            **_ending(cluster.leaving_ms),
            **({"labels": spec.labels} if spec.labels else {}),
            **({"annotations": spec.annotations} if spec.annotations else {}),
            **({"managedFields": _all_managed_fields(spec, status)} if managed else {}),
        },
        "spec": {name: value for name, value in fields.items() if value},
        "status": status,
    }


def shown_models(spec: Spec) -> tuple[events.ResourceGrade, ...]:
    """Return the grades of a cluster's nodes, or Karmada's defaults; only recorded ones count for capacity."""
    return spec.resource_models or DEFAULT_MODELS


def enablements(apis: Iterable[events.ApiKind]) -> list[Json]:
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
    """Return the plural names of the kinds, recorded or derived."""
    if len(api.names) == len(api.kinds):
        return api.names
    return tuple(known_kinds.plural_of(api.group_version, kind) for kind in api.kinds)


def work_document(key: str, cluster: str, work: Work) -> Json:
    """Return a work for the query API; ``version`` is the term and step of its decision."""
    return {
        "cluster": cluster,
        "binding": key,
        "name": keys.binding_name(work.template.kind, work.template.name),
        "resource": cast("Json", msgspec.to_builtins(work.template)),
        **({} if work.replicas is None else {"replicas": work.replicas}),
        "suspended": work.suspended,
        "template": {"shard": work.shard, "offset": work.offset, "digest": work.digest},
        "version": {"term": work.term, "step": work.step},
        "resourceVersion": str(work.number),
    }


def managed_fields(spec: Spec) -> list[Json]:
    """Return the ``managedFields`` entries of clients."""
    return field_owners.entries(spec.managed_fields)


def _all_managed_fields(spec: Spec, status: Json) -> list[Json]:
    """The entries of clients, and the engine's for all status fields that no client owns."""
    managed = managed_fields(spec)
    engine_fields = field_owners.beside(status, managed)
    if engine_fields:
        managed.append(
            field_owners.of_engine(
                API_VERSION, field_owners.STATUS, engine_fields, subresource=field_owners.STATUS
            )
        )
    return managed


def _ending(leaving_ms: int) -> Json:
    if not leaving_ms:
        return {}
    return {"deletionTimestamp": times.to_seconds_text(leaving_ms), "deletionGracePeriodSeconds": 0}


def _reference(reference: events.SecretRef | None) -> Json | None:
    return None if reference is None else {"namespace": reference.namespace, "name": reference.name}


def _taint(taint: events.Taint) -> Json:
    added = instant(taint.time_added_ms or 0)
    return {
        "key": taint.key,
        **({"value": taint.value} if taint.value else {}),
        "effect": taint.effect,
        **({"timeAdded": added} if added else {}),
    }


def _status(cluster: Cluster) -> Json:
    status: Json = {"apiEnablements": enablements(cluster.spec.apis)}
    if cluster.spec.kubernetes_version:
        status["kubernetesVersion"] = cluster.spec.kubernetes_version
    if cluster.room is not None:
        status["resourceSummary"] = _summary(cluster.room)
        if cluster.room.nodes is not None:
            status["nodeSummary"] = {"totalNum": cluster.room.nodes, "readyNum": cluster.room.nodes_ready}
    conditions: list[Json] = []
    health = cluster.health
    if health is not None:
        condition: Json = {
            "type": "Ready",
            "status": health.status,
            "reason": health.reason,
            "message": health.message,
            "lastTransitionTime": instant(health.since_ms),
        }
        conditions += [condition, _enablements_condition(cluster)]
    conditions += [_condition(reported) for reported in cluster.conditions]
    if conditions:
        status["conditions"] = conditions
    return status


def _condition(reported: events.ClusterCondition) -> Json:
    return {
        "type": reported.type,
        "status": reported.status,
        "reason": reported.reason,
        "message": reported.message,
        "lastTransitionTime": instant(reported.last_transition_ms or 0),
    }


def _enablements_condition(cluster: Cluster) -> Json:
    """The condition whether the served kinds are known; without them the built-in kinds are assumed."""
    is_known = bool(cluster.spec.apis)
    return {
        "type": "CompleteAPIEnablements",
        "status": str(is_known),
        "reason": "Complete" if is_known else "Empty",
        "message": f"collected {'complete' if is_known else 'empty'} APIEnablements from the cluster",
        "lastTransitionTime": instant(cluster.head.created_ms),
    }


def _summary(room: ReportedCapacity) -> Json:
    summary: Json = {
        "allocatable": room.allocatable,
        "allocated": room.allocated,
        "allocating": room.allocating,
    }
    if room.modelings:
        summary["allocatableModelings"] = [
            {"grade": modeling.grade, "count": modeling.count} for modeling in room.modelings
        ]
    return {name: value for name, value in summary.items() if value}
