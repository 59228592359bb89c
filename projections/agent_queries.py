"""Queries for agents: works of a cluster, the work of one binding in a cluster, and earlier works of a binding."""

from typing import Final, NamedTuple

from engine.domain import marks, namespaces
from events import keys
from projections import former_versions, works
from projections.documents.works import mark_values, object_in_cluster
from projections.objects import COLUMNS, ObjectRow
from projections.port import Rows
from projections.works import Work

# Works per page.
PAGE: Final = 500
_NAMESPACE: Final = keys.object_key(namespaces.KIND[1], "", "")
"""Prefix of the keys of namespaces; no key of a binding begins with it."""

_ID: Final = "SELECT id FROM keys WHERE key = ?"


class CurrentWork(NamedTuple):
    """A work with its binding's key and that key's id."""

    id: int
    key: str
    work: Work


class Placed(NamedTuple):
    """A work, and the values for the labels and annotations of its object."""

    work: Work
    mark_values: marks.MarkValues

    @property
    def version(self) -> tuple[int, int]:
        """The version of the work: term and step of the decision that produced it."""
        return self.work.term, self.work.step


def works_of(rows: Rows, name: str, after: int) -> list[CurrentWork]:
    """Return a page of the works of bindings in a cluster: those with key ids above ``after``, in order of key ids."""
    rows_found = rows.select(_ID, (keys.cluster_key(name),))
    if not rows_found:
        return []
    statement = """
        SELECT w.id, k.key, w.body FROM works w JOIN keys k ON k.id = w.id
        WHERE w.cluster = ? AND w.id > ? AND substr(k.key, 1, ?) <> ? ORDER BY w.id LIMIT ?
    """
    page = rows.select(statement, (rows_found[0][0], after, len(_NAMESPACE), _NAMESPACE, PAGE))
    return [CurrentWork(key_id, key, works.decode(body)) for key_id, key, body in page]


def placed(rows: Rows, name: str, key: str) -> Placed | None:
    """Return the work of a binding in a cluster; None if there is none."""
    if key.startswith(_NAMESPACE):
        return None
    statement = """
        SELECT w.body, coalesce(o.uid, ''), coalesce(o.generation, 0) FROM works w
        JOIN keys c ON c.id = w.cluster JOIN keys k ON k.id = w.id LEFT JOIN objects o ON o.id = w.id
        WHERE c.key = ? AND k.key = ?
    """
    rows_found = rows.select(statement, (keys.cluster_key(name), key))
    if not rows_found:
        return None
    body, uid, generation = rows_found[0]
    work = works.decode(body)
    return Placed(work, mark_values(name, work, uid, generation))


def newest_works(rows: Rows, key: str, before: int) -> list[int]:
    """Return sequence numbers below ``before`` of a binding's works, in any cluster: at most a page, newest first."""
    statement = """
        SELECT number FROM timeline JOIN keys USING (id)
        WHERE key = ? AND number < ? AND is_work ORDER BY number DESC LIMIT ?
    """
    return [number for (number,) in rows.select(statement, (key, before, PAGE))]


def namespaces_of(rows: Rows, name: str) -> list[namespaces.PropagatedNamespace]:
    """Return the namespaces that are propagated to a cluster, ordered by name."""
    statement = f"""
        SELECT w.body, f.manifest, '', {COLUMNS}
        FROM objects o JOIN keys c ON c.key = ? JOIN works w ON w.id = o.id AND w.cluster = c.id
        LEFT JOIN former_versions f ON f.id = o.id AND f.mark = ?
        WHERE o.api_version = ? AND o.kind = ? ORDER BY o.name
    """  # noqa: S608  # constants
    parameters = (keys.cluster_key(name), former_versions.MARK_OF_NAMESPACE, *namespaces.KIND)
    result: list[namespaces.PropagatedNamespace] = []
    for body, former, *row in rows.select(statement, parameters):
        work, current = works.decode(body), ObjectRow(*row)
        template = current if former is None else current._replace(manifest=former)
        manifest = object_in_cluster(name, work, template)
        result.append(namespaces.PropagatedNamespace(manifest, work.created_ms))
    return result
