"""Projection of clusters: the spec of each member cluster as clients set it, and the member's reports.

``documents/clusters`` renders the facts as Cluster objects.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import structs

from engine.domain import clusters as domain
from events import clusters as events
from events import keys, shapes
from events.validation.verdicts import Head, Taken
from projections.port import Queryable, Rows
from projections.working_set import WorkingSet

SCHEMA: Final = "CREATE TABLE clusters (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, body BLOB NOT NULL);"


class Cluster(domain.Cluster, frozen=True, array_like=True, kw_only=True):
    """A cluster; ``number`` is that of the last record that changed it.

    ``written`` is the number of the last such record that was not a report of the member.
    """

    name: str
    head: Head
    number: int = 0
    written: int = 0


decode: Final = msgspec.json.Decoder(Cluster).decode
_STORED: Final = "SELECT body FROM clusters JOIN keys USING (id) WHERE key = ?"
_KEYS: Final = "SELECT key FROM clusters JOIN keys USING (id) ORDER BY key"


class Clusters(WorkingSet[int, Cluster]):
    """Folds inputs about clusters."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows, "clusters", decode, lambda cluster: (cluster.number,))

    def take(self, key_id: int, taken: Taken) -> bool:
        """Fold an input that takes effect; return whether it changes the rendered cluster."""
        if isinstance(taken.data, events.ClusterLeft):
            self.put(key_id, None)
            return True
        before = self.get(key_id)
        cluster = before
        if isinstance(taken.data, events.ClusterJoined) and cluster is None and taken.head is not None:
            spec = domain.joined(taken.data, taken.at_ms)
            cluster = Cluster(name=taken.data.name, head=taken.head, spec=spec)
        if cluster is None:
            return False
        cluster = domain.with_event(cluster, taken.data, taken.at_ms)
        is_changed = before is None or not _is_heartbeat(taken.data, before.health, cluster.health)
        if is_changed:
            number = taken.record.number
            is_write = taken.head is not None and taken.head.version == taken.record.offset + 1
            is_report = not is_write or isinstance(taken.data, events.ClusterApisReported)
            cluster = structs.replace(
                cluster,
                head=taken.head or cluster.head,
                number=number,
                written=cluster.written if is_report else number,
            )
        self.put(key_id, cluster)
        return is_changed


def stored(rows: Queryable, name: str) -> Cluster | None:
    """Return the cluster with a name; None if there is none."""
    matches = rows.select(_STORED, (keys.cluster_key(name),))
    return decode(matches[0][0]) if matches else None


def names(rows: Queryable) -> list[str]:
    """Return the names of all clusters, in order."""
    return [str(key).removeprefix(keys.cluster_key("")) for (key,) in rows.select(_KEYS)]


def stored_all(rows: Queryable) -> Iterator[Cluster]:
    """Yield all clusters in the order in which they joined first."""
    for (body,) in rows.select("SELECT body FROM clusters ORDER BY id"):
        yield decode(body)


def _is_heartbeat(data: shapes.Event, before: domain.Health | None, after: domain.Health | None) -> bool:
    """Whether an event changes only ``heard_ms``; then there is no new resourceVersion and no watch event."""
    if not isinstance(data, events.ClusterHealthChanged):
        return False
    if before is None or after is None:
        return before is after
    return structs.replace(before, heard_ms=after.heard_ms) == after
