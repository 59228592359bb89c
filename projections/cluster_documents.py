"""Clusters as Cluster objects (``cluster.karmada.io/v1alpha1``), and works as what a cluster must run."""

from typing import cast

import msgspec

from events import clusters as events
from events import keys
from projections.clusters import Cluster, Room
from projections.documents import Json, identity, instant
from projections.works import Work


def cluster_document(cluster: Cluster) -> Json:
    """The cluster as an object; what it never reported is not shown."""
    head, spec = cluster.head, cluster.spec
    fields: Json = {
        "syncMode": spec.sync_mode,
        "apiEndpoint": spec.api_endpoint,
        "provider": spec.provider,
        "region": spec.region,
        "zones": list(spec.zones),
        "taints": [_taint(taint) for taint in spec.taints],
        "resourceModels": msgspec.to_builtins(spec.resource_models),
    }
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {
            "name": cluster.name,
            **identity(head.uid, head.generation, head.created_ms, cluster.number),
            **({"labels": spec.labels} if spec.labels else {}),
        },
        "spec": {name: value for name, value in fields.items() if value},
        "status": _status(cluster),
    }


def work_document(key: str, cluster: str, work: Work) -> Json:
    """A work as it stands; ``version`` is that of the decision which it follows from."""
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


def _taint(taint: events.Taint) -> Json:
    added = instant(taint.time_added_ms or 0)
    return {
        "key": taint.key,
        **({"value": taint.value} if taint.value else {}),
        "effect": taint.effect,
        **({"timeAdded": added} if added else {}),
    }


def _status(cluster: Cluster) -> Json:
    status: Json = {
        "apiEnablements": [
            {"groupVersion": api.group_version, "resources": [{"kind": kind} for kind in api.kinds]}
            for api in cluster.spec.apis
        ]
    }
    if cluster.room is not None:
        status["resourceSummary"] = _summary(cluster.room)
    health = cluster.health
    if health is not None:
        condition: Json = {
            "type": "Ready",
            "status": "True" if health.ready else "False",
            "reason": health.reason,
            "message": health.message,
            "lastTransitionTime": instant(health.since_ms),
        }
        status["conditions"] = [condition]
    return status


def _summary(room: Room) -> Json:
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
