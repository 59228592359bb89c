"""Queries for agents: the works of one cluster, and the work of one binding in it."""

from typing import Final, NamedTuple

from engine.domain import marks
from events import keys
from projections import clusters, works
from projections.clusters import Cluster
from projections.documents.works import propagation
from projections.port import Rows
from projections.works import Work

# Works per page.
PAGE: Final = 500
_ID: Final = "SELECT id FROM keys WHERE key = ?"


class CurrentWork(NamedTuple):
    """A work with its binding's key and that key's id."""

    id: int
    key: str
    work: Work


class Placed(NamedTuple):
    """A work, and the facts from which the marks of its object follow."""

    work: Work
    propagation: marks.Propagation

    @property
    def version(self) -> tuple[int, int]:
        """Orders the works of a binding in a cluster."""
        return self.work.term, self.work.step


def cluster(rows: Rows, name: str) -> Cluster | None:
    rows_found = rows.select(
        "SELECT body FROM clusters JOIN keys USING (id) WHERE key = ?", (keys.cluster_key(name),)
    )
    return clusters.decode(rows_found[0][0]) if rows_found else None


def works_of(rows: Rows, name: str, after: int) -> list[CurrentWork]:
    """Return a page of a cluster's works in the order of their key ids, starting after the id ``after``."""
    rows_found = rows.select(_ID, (keys.cluster_key(name),))
    if not rows_found:
        return []
    statement = """
        SELECT w.id, k.key, w.body FROM works w JOIN keys k ON k.id = w.id
        WHERE w.cluster = ? AND w.id > ? ORDER BY w.id LIMIT ?
    """
    page = rows.select(statement, (rows_found[0][0], after, PAGE))
    return [CurrentWork(key_id, key, works.decode(body)) for key_id, key, body in page]


def placed(rows: Rows, name: str, key: str) -> Placed | None:
    """Return the work of a binding in a cluster; None if there is none."""
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
    return Placed(work, propagation(name, work, uid, generation))
