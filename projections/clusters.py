"""Projection of clusters: the spec of each member as set by clients, and its reports.

``documents/clusters`` renders the facts as Cluster objects.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from events import clusters as events
from events import enums, shapes
from events.validation.verdicts import Head, Taken
from projections.port import Row, Rows
from projections.working_set import WorkingSet

SCHEMA: Final = "CREATE TABLE clusters (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, body BLOB NOT NULL);"


class Spec(Struct, frozen=True, array_like=True):
    """Fields set by clients."""

    labels: dict[str, str]
    provider: str
    region: str
    zones: tuple[str, ...]
    taints: tuple[events.Taint, ...]
    apis: tuple[events.ApiKind, ...]
    resource_models: tuple[events.ResourceGrade, ...]
    sync_mode: enums.SyncMode
    api_endpoint: str
    id: str = ""
    proxy_url: str = ""
    secret_ref: events.SecretRef | None = None
    impersonator_secret_ref: events.SecretRef | None = None
    kubernetes_version: str = ""
    annotations: dict[str, str] = {}
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()


class ReportedCapacity(Struct, frozen=True, array_like=True):
    """Capacity of the cluster as last reported, in Kubernetes quantities."""

    allocatable: dict[str, str]
    allocated: dict[str, str]
    allocating: dict[str, str]
    modelings: tuple[events.GradeCount, ...]
    nodes: int | None = None
    nodes_ready: int = 0


class Health(Struct, frozen=True, array_like=True, gc=False):
    """Health of the cluster's control plane; ``silent`` if its reporter missed its grace period.

    ``since_ms`` is when the status last changed, ``heard_ms`` the time of the last report.
    """

    ready: bool
    reason: str
    message: str
    since_ms: int
    silent: bool = False
    heard_ms: int = 0

    @property
    def status(self) -> str:
        """Status of the condition Ready: True, False or Unknown."""
        return "Unknown" if self.silent else str(self.ready)


class Cluster(Struct, array_like=True):
    """The facts of a cluster; ``number`` is that of the last record that changed them.

    ``leaving_ms`` is the time of its deletion request; 0 if there is none.
    """

    name: str
    number: int
    head: Head
    spec: Spec
    room: ReportedCapacity | None = None
    health: Health | None = None
    leaving_ms: int = 0


_encode = msgspec.json.Encoder(order="deterministic").encode
decode: Final = msgspec.json.Decoder(Cluster).decode


class Clusters:
    """Folds inputs about clusters."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._documents: WorkingSet[Cluster] = WorkingSet(self._load)

    def get(self, key_id: int) -> Cluster | None:
        """Return the current cluster; callers must not modify it."""
        return self._documents.get(key_id)

    def take(self, key_id: int, taken: Taken) -> None:
        """Fold an input that takes effect."""
        if isinstance(taken.data, events.ClusterLeft):
            self._documents.put(key_id, None)
            return
        cluster = self._documents.get(key_id)
        match taken.data:
            case events.ClusterJoined() if taken.head is not None:
                spec = _joined(taken.data, taken.at_ms)
                if cluster is None:
                    cluster = Cluster(taken.data.name, 0, taken.head, spec)
                cluster.spec = spec
            case events.ClusterLeaving() if cluster is not None:
                cluster.leaving_ms = cluster.leaving_ms or taken.at_ms
            case events.CapacityReported() if cluster is not None:
                data = taken.data
                capacity = (data.allocatable, data.allocated, data.allocating, data.modelings)
                cluster.room = ReportedCapacity(*capacity, data.nodes, data.nodes_ready)
            case events.ClusterHealthChanged() if cluster is not None:
                previous, cluster.health = cluster.health, _health(cluster.health, taken.data, taken.at_ms)
                if _is_same(previous, cluster.health):
                    # A heartbeat changes only heard_ms; it must not produce a new resourceVersion or a watch
                    # event.
                    self._documents.put(key_id, cluster)
                    return
            case _ if cluster is not None:
                cluster.spec = edited(cluster.spec, taken.data, taken.at_ms)
            case _:
                return
        cluster.head = taken.head or cluster.head
        cluster.number = taken.record.number
        self._documents.put(key_id, cluster)

    def flush(self, rows: Rows) -> None:
        deleted: list[Row] = []
        stored: list[Row] = []
        for key_id, cluster in self._documents.changed():
            if cluster is None:
                deleted.append((key_id,))
            else:
                stored.append((key_id, cluster.number, _encode(cluster)))
        rows.write("DELETE FROM clusters WHERE id = ?", deleted)
        rows.write("INSERT OR REPLACE INTO clusters VALUES (?, ?, ?)", stored)

    def _load(self, key_id: int) -> Cluster | None:
        rows = self._rows.select("SELECT body FROM clusters WHERE id = ?", (key_id,))
        return decode(rows[0][0]) if rows else None


def stored_heads(rows: Rows) -> Iterator[tuple[str, Head]]:
    """Yield the heads of all clusters, by name."""
    for (body,) in rows.select("SELECT body FROM clusters ORDER BY id"):
        cluster = decode(body)
        yield cluster.name, cluster.head


def _joined(data: events.ClusterJoined, at_ms: int) -> Spec:
    return Spec(
        data.labels,
        data.provider,
        data.region,
        data.zones,
        tuple(_since(taint, at_ms) for taint in data.taints),
        data.apis,
        data.resource_models,
        data.sync_mode,
        data.api_endpoint,
        data.id,
        data.proxy_url,
        data.secret_ref,
        data.impersonator_secret_ref,
        data.kubernetes_version,
        data.annotations,
        data.managed_fields,
    )


def edited(spec: Spec, data: shapes.Event, at_ms: int) -> Spec:
    """Return the spec after an event that changes one of its parts."""
    replace = msgspec.structs.replace
    match data:
        case events.ClusterLabelled(labels=labels):
            edited_spec = replace(spec, labels=labels)
        case events.ClusterDescribed():
            edited_spec = replace(spec, provider=data.provider, region=data.region, zones=data.zones)
        case events.ClusterTainted(taint=taint):
            edited_spec = replace(spec, taints=_tainted(spec.taints, taint, at_ms))
        case events.ClusterUntainted(key=key, effect=effect):
            taints = (old for old in spec.taints if old.key != key or (effect and old.effect != effect))
            edited_spec = replace(spec, taints=tuple(taints))
        case _:
            return spec
    return replace(edited_spec, managed_fields=data.managed_fields or spec.managed_fields)


def _tainted(taints: tuple[events.Taint, ...], taint: events.Taint, at_ms: int) -> tuple[events.Taint, ...]:
    replaced = [old for old in taints if (old.key, old.effect) == (taint.key, taint.effect)]
    if replaced and replaced[0].value == taint.value:
        # An unchanged taint keeps its original timeAdded.
        return taints
    return (*(old for old in taints if old not in replaced), _since(taint, at_ms))


def _since(taint: events.Taint, at_ms: int) -> events.Taint:
    if taint.time_added_ms is not None:
        return taint
    return msgspec.structs.replace(taint, time_added_ms=at_ms)


def _health(previous: Health | None, data: events.ClusterHealthChanged, at_ms: int) -> Health:
    # A report newer than `heard_ms` was folded before the engine's `silent` event: the report wins.
    if previous is not None and data.silent and previous.heard_ms > data.heard_ms:
        return previous
    heard_ms = data.heard_ms if data.silent else at_ms
    health = Health(data.ready, data.reason, data.message, at_ms, data.silent, heard_ms)
    if previous is None or previous.status != health.status:
        return health
    return msgspec.structs.replace(health, since_ms=previous.since_ms)


def _is_same(previous: Health | None, current: Health) -> bool:
    return previous is not None and msgspec.structs.replace(previous, heard_ms=current.heard_ms) == current
