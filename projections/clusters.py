"""Projection of clusters: the spec of each member as set by clients, and its reports.

``documents/clusters`` renders the facts as Cluster objects.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from engine.domain import clusters as domain
from events import clusters as events
from events import keys, shapes
from events.validation.verdicts import Head, Taken
from projections.port import Queryable, Row, Rows
from projections.working_set import WorkingSet

SCHEMA: Final = "CREATE TABLE clusters (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, body BLOB NOT NULL);"


class ReportedCapacity(Struct, frozen=True, array_like=True):
    """Capacity of the cluster as last reported, in Kubernetes quantities."""

    allocatable: dict[str, str]
    allocated: dict[str, str]
    allocating: dict[str, str]
    modelings: tuple[events.GradeCount, ...]
    nodes: int | None = None
    nodes_ready: int = 0


class Cluster(Struct, array_like=True):
    """The facts of a cluster; ``number`` is that of the last record that changed them.

    ``written`` is the number of the last record that was not a report. ``leaving_ms`` is the time of the request to
    delete the cluster; 0 if there is none.
    """

    name: str
    number: int
    head: Head
    spec: domain.Spec
    room: ReportedCapacity | None = None
    health: domain.Health | None = None
    leaving_ms: int = 0
    conditions: tuple[events.ClusterCondition, ...] = ()
    written: int = 0


_encode = msgspec.json.Encoder(order="deterministic").encode
decode: Final = msgspec.json.Decoder(Cluster).decode
_STORED: Final = "SELECT body FROM clusters JOIN keys USING (id) WHERE key = ?"
_KEYS: Final = "SELECT key FROM clusters JOIN keys USING (id) ORDER BY key"


class Clusters:
    """Folds inputs about clusters."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._documents: WorkingSet[Cluster] = WorkingSet(self._load)

    def get(self, key_id: int) -> Cluster | None:
        """Return the current cluster, None if there is none; callers must not modify it."""
        return self._documents.get(key_id)

    def take(self, key_id: int, taken: Taken) -> bool:
        """Fold an input that takes effect; return whether it changes the rendered cluster."""
        if isinstance(taken.data, events.ClusterLeft):
            self._documents.put(key_id, None)
            return True
        cluster = self._documents.get(key_id)
        if isinstance(taken.data, events.ClusterJoined) and cluster is None and taken.head is not None:
            cluster = Cluster(taken.data.name, 0, taken.head, domain.joined(taken.data, taken.at_ms))
        if cluster is None:
            return False
        # A heartbeat changes only heard_ms; it must not produce a new resourceVersion or a watch event.
        is_changed = apply(cluster, taken.data, taken.at_ms)
        if is_changed:
            is_write = taken.head is not None and taken.head.version == taken.record.offset + 1
            cluster.head = taken.head or cluster.head
            cluster.number = taken.record.number
            if is_write and not isinstance(taken.data, events.ClusterApisReported):
                cluster.written = taken.record.number
        self._documents.put(key_id, cluster)
        return is_changed

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


def apply(cluster: Cluster, data: shapes.Event, at_ms: int) -> bool:
    """Apply an event other than ClusterLeft to a cluster; return False if only the time of a heartbeat changed."""
    match data:
        case events.ClusterJoined():
            cluster.spec = domain.joined(data, at_ms)
        case events.ClusterLeaving():
            cluster.leaving_ms = cluster.leaving_ms or at_ms
        case events.CapacityReported():
            capacity = (data.allocatable, data.allocated, data.allocating, data.modelings)
            cluster.room = ReportedCapacity(*capacity, data.nodes, data.nodes_ready)
        case events.ClusterHealthChanged():
            previous = cluster.health
            cluster.health = domain.health_after(previous, data, at_ms) or previous
            return not _is_same(previous, cluster.health)
        case events.ClusterConditionsReported():
            cluster.conditions = domain.conditions_after(cluster.conditions, data, at_ms)
        case _:
            cluster.spec = domain.edited(cluster.spec, data, at_ms)
    return True


def stored(rows: Queryable, name: str) -> Cluster | None:
    """Return the cluster with a name; None if there is none."""
    matches = rows.select(_STORED, (keys.cluster_key(name),))
    return decode(matches[0][0]) if matches else None


def names(rows: Queryable) -> list[str]:
    """Return the names of all clusters, in order."""
    return [str(key).removeprefix(keys.cluster_key("")) for (key,) in rows.select(_KEYS)]


def stored_heads(rows: Rows) -> Iterator[tuple[str, Head]]:
    """Yield the name and the head (the state on which verdicts depend) of each cluster."""
    for (body,) in rows.select("SELECT body FROM clusters ORDER BY id"):
        cluster = decode(body)
        yield cluster.name, cluster.head


def _is_same(previous: domain.Health | None, current: domain.Health | None) -> bool:
    if previous is None or current is None:
        return previous is current
    return msgspec.structs.replace(previous, heard_ms=current.heard_ms) == current
