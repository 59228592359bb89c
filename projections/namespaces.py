"""Works of namespaces: one work for each propagated namespace in each cluster.

They are derived from the existing namespaces and clusters, not from decisions or recorded works, so a cluster that
joins later gets the same works. Agents and simulated members create the namespaces in their clusters.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from engine.domain import namespaces
from events import ids, kube_objects, shapes
from events.validation.verdicts import Taken
from projections import clusters, former_versions
from projections.changed_objects import ChangedObjects
from projections.port import Rows
from projections.works import Work, WorkKeyIds, Works

_SOURCE: Final = "/reballast/namespaces"
_CLUSTERS: Final = "SELECT id, body FROM clusters ORDER BY id"
_NAMESPACES: Final = """
SELECT id, name, uid, labels FROM objects WHERE kind = 'Namespace' AND api_version = 'v1' ORDER BY id
"""
_LABELS: Final = msgspec.json.Decoder(dict[str, str])


class Namespace(Struct, frozen=True, gc=False):
    """A propagated namespace."""

    name: str
    uid: str


class NamespaceWorks:
    """Adds and removes the works of namespaces; knows all member clusters and all propagated namespaces by key id."""

    def __init__(self, rows: Rows, works: Works, changed_objects: ChangedObjects) -> None:
        self._works = works
        self._changed_objects = changed_objects
        selected = ((key_id, clusters.decode(body)) for key_id, body in rows.select(_CLUSTERS))
        self._clusters = {key_id: cluster.name for key_id, cluster in selected if cluster.leaving_ms is None}
        self._namespaces: dict[int, Namespace] = {}
        for key_id, name, uid, labels in rows.select(_NAMESPACES):
            self._note(key_id, Namespace(name, uid), _LABELS.decode(labels) if labels else {})

    def namespace_put(self, key_id: int, taken: Taken, manifest: kube_objects.Manifest) -> None:
        """Add the works of a namespace that was written.

        If the namespace is no longer propagated, add none; its existing works stay.
        """
        head = taken.head
        if head is None:
            return
        self._note(key_id, Namespace(head.name, head.uid), manifest.metadata.labels)
        for member in self._clusters:
            self._add(member, key_id, taken.record.number, taken.at_ms)

    def namespace_removed(self, key_id: int, number: int) -> None:
        self._namespaces.pop(key_id, None)
        for where in self._works.of_key(key_id):
            self._remove(where, number)

    def cluster_joined(self, member: int, name: str, number: int, at_ms: int) -> None:
        self._clusters[member] = name
        for key_id in self._namespaces:
            self._add(member, key_id, number, at_ms)

    def cluster_leaving(self, member: int, number: int) -> None:
        """Remove the works of namespaces from a cluster that is leaving or has left."""
        # ``of_namespaces`` includes the works of namespaces that are no longer propagated.
        for where in self._works.of_namespaces(member) if member in self._clusters else ():
            self._remove(where, number)
        self._clusters.pop(member, None)

    def _note(self, key_id: int, namespace: Namespace, labels: Mapping[str, str]) -> None:
        if namespaces.is_propagated(namespace.name, labels):
            self._namespaces[key_id] = namespace
        else:
            self._namespaces.pop(key_id, None)

    def _add(self, member: int, key_id: int, number: int, at_ms: int) -> None:
        namespace, where = self._namespaces.get(key_id), (member, key_id)
        if namespace is None or self._works.get(where) is not None:
            return
        cluster = self._clusters[member]
        api_version, kind = namespaces.KIND
        work = Work(
            number,
            shapes.WorkloadRef(api_version=api_version, kind=kind, name=namespace.name),
            0,
            0,
            former_versions.MARK_OF_NAMESPACE,
            0,
            0,
            None,
            uid=ids.object_uid(_SOURCE, f"{namespace.uid}-{number}", cluster),
            created_ms=at_ms,
            dispatching_ms=at_ms,
        )
        self._works.add(where, work)
        self._changed_objects.work_changed(where, number, cluster, None, work)

    def _remove(self, where: WorkKeyIds, number: int) -> None:
        work = self._works.remove(where)
        if work is not None:
            self._changed_objects.work_changed(where, number, self._clusters[where[0]], work, None)
