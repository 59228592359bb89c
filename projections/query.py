"""Queries of the query API: one object or a page of objects.

Pages are ordered by key (objects: by kind, namespace, name). ``limit`` bounds the items of a page; the rows
read per page are bounded too, so a filter that few rows match gives short pages. ``after`` continues where a
page ended. ``rows`` must come from one consistent read (``Store.reading``).
"""

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from events import keys
from events.kube_objects import KubeObject
from events.validation import known_kinds
from projections import bindings, clusters, steps, works
from projections.documents.clusters import ShownWork, cluster_document, shown_work
from projections.object_tables import (
    OBJECTS,
    binding_document_of,
    checked_int64,
    namespace_bounds,
    object_document_of,
    object_row,
)
from projections.port import ResultRow, Rows, Value

NUMBER_MAX: Final = 2**62
"""Greater than any number of a record."""

LIMIT_MAX: Final = 1_000
ROWS_READ_MAX: Final = 20_000
"""Maximum number of rows read for one page, so that a filter that few rows match does not read the whole table."""

_BINDING: Final = "SELECT id, key, body FROM keys JOIN bindings USING (id)"
# The condition equals that of the partial index, so that SQLite reads only unscheduled bindings.
_UNSCHEDULED: Final = """
SELECT scheduled, count(*) FROM bindings WHERE scheduled NOT IN ('', 'Success') GROUP BY scheduled ORDER BY scheduled
"""
_LABELS: Final = msgspec.json.Decoder(dict[str, str])


LabelTest = Callable[[Mapping[str, str]], bool]
"""Function that returns whether an object with these labels matches."""


_Item = TypeVar("_Item")


class Page(Struct, Generic[_Item], frozen=True):
    """A page of results; ``after`` is the continue token for the next page, empty on the last page."""

    items: list[_Item]
    after: str = ""


Objects = Page[KubeObject]


class Rejection(Struct, frozen=True, kw_only=True, rename="camel"):
    """A rejected input as the query API shows it."""

    number: int
    time: str
    verdict: str
    field: str
    reason: str
    topic: str
    key: str
    source: str
    content: str
    partition: int
    offset: int
    event_id: str


class Filter(Struct, frozen=True, kw_only=True):
    """Conditions on an object; an empty string matches anything. ``labels`` tests the labels."""

    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    cluster: str = ""
    labels: LabelTest | None = None


ANY: Final = Filter()
_REBALANCERS: Final = Filter(kind="WorkloadRebalancer", api_version=known_kinds.APPS_GROUP)


def key_of(rows: Rows, key_id: int) -> str:
    """Return the key with an id in the table of keys."""
    ((key,),) = rows.select("SELECT key FROM keys WHERE id = ?", (key_id,))
    return str(key)


def list_bindings(rows: Rows, filters: Filter = ANY, *, limit: int = 100, after: str = "") -> Objects:
    """Return bindings; ``cluster`` filters by assigned cluster, ``labels`` by the template's labels."""
    statement = f"{_BINDING} WHERE key > ?"
    where: list[Value] = [after]
    if filters.namespace:
        statement += " AND key > ? AND key < ?"
        where += namespace_bounds(filters.namespace)
    if filters.cluster:
        statement += " AND instr(clusters, ?) > 0"
        where.append(f",{filters.cluster},")

    def show(row: ResultRow) -> tuple[str, KubeObject | None]:
        key_id, key, body = row
        binding = bindings.decode(body)
        template = binding.template
        fits = filters.kind in ("", template.kind) and filters.name in ("", template.name)
        if fits and filters.labels is not None:
            fits = filters.labels(_labels(rows, key_id))
        return key, binding_document_of(rows, binding, {}, managed=False) if fits else None

    return _page(rows, f"{statement} ORDER BY key", where, show, limit)


def get_binding(rows: Rows, key: str) -> KubeObject | None:
    binding = bindings.stored(rows, key)
    return None if binding is None else binding_document_of(rows, binding, {}, managed=False)


def list_objects(rows: Rows, filters: Filter = ANY, *, limit: int = 100, after: str = "") -> Objects:
    """Return objects of all kinds but Cluster, ordered by kind, namespace and name."""
    statement, where = f"{OBJECTS} WHERE (kind, namespace, name, o.id) > (?, ?, ?, ?)", _mark(after)
    for column in ("kind", "api_version", "namespace", "name"):
        value: str = getattr(filters, column)
        if value:
            statement += f" AND {column} = ?"
            where.append(value)

    def show(row: ResultRow) -> tuple[str, KubeObject | None]:
        item = object_row(row)
        mark = msgspec.json.encode((item.kind, item.namespace, item.name, row[0])).decode()
        fits = filters.labels is None or filters.labels(_LABELS.decode(item.labels) if item.labels else {})
        return mark, object_document_of(row, managed=False) if fits else None

    return _page(rows, f"{statement} ORDER BY kind, namespace, name, o.id", where, show, limit)


def get_object(rows: Rows, key: str) -> KubeObject | None:
    """Return the object with this key (see ``events.keys``); None if there is none."""
    matches = rows.select(f"{OBJECTS} WHERE key = ?", (key,))
    return object_document_of(matches[0], managed=False) if matches else None


def list_rebalancers(rows: Rows, *, limit: int = 100, after: str = "") -> Objects:
    return list_objects(rows, _REBALANCERS, limit=limit, after=after)


def get_rebalancer(rows: Rows, name: str) -> KubeObject | None:
    return get_object(rows, keys.rebalancer_key(name))


def list_clusters(rows: Rows, filters: Filter = ANY, *, limit: int = 100, after: str = "") -> Objects:
    """Return clusters, ordered by name."""
    statement = "SELECT key, body FROM keys JOIN clusters USING (id) WHERE key > ? ORDER BY key"

    def show(row: ResultRow) -> tuple[str, KubeObject | None]:
        key, body = row
        cluster = clusters.decode(body)
        fits = filters.name in ("", cluster.name)
        fits = fits and (filters.labels is None or filters.labels(cluster.spec.labels))
        return key, cluster_document(cluster) if fits else None

    return _page(rows, statement, [after], show, limit)


def get_cluster(rows: Rows, name: str) -> KubeObject | None:
    cluster = clusters.stored(rows, name)
    return None if cluster is None else cluster_document(cluster)


def list_works(
    rows: Rows, cluster: str = "", key: str = "", *, limit: int = 100, after: str = ""
) -> Page[ShownWork]:
    """Return works of bindings, ordered by cluster and binding; filtered by cluster or binding key if set."""
    statement = """
        SELECT c.id, k.id, c.key, k.key, w.body FROM works w
        JOIN keys c ON c.id = w.cluster JOIN keys k ON k.id = w.id
        WHERE substr(k.key, 1, 10) <> 'namespace:' AND (w.cluster, w.id) > (?, ?)
    """
    where: list[Value] = list(_numbers(after))
    for column, value in (("c", cluster and keys.cluster_key(cluster)), ("k", key)):
        if value:
            statement += f" AND {column}.key = ?"
            where.append(value)

    def show(row: ResultRow) -> tuple[str, ShownWork]:
        cluster_id, key_id, cluster_name, binding_key, body = row
        name = str(cluster_name).removeprefix(keys.cluster_key(""))
        return f"{cluster_id}.{key_id}", shown_work(binding_key, name, works.decode(body))

    return _page(rows, f"{statement} ORDER BY w.cluster, w.id", where, show, limit)


def timeline(rows: Rows, key: str, *, limit: int = 100, after: int = 0) -> list[int]:
    """Return the numbers of the records that touched a key, oldest first."""
    statement = """
        SELECT number FROM timeline JOIN keys USING (id)
        WHERE key = ? AND number > ? ORDER BY number LIMIT ?
    """
    return [number for (number,) in rows.select(statement, (key, after, _bounded(limit)))]


def newest(rows: Rows, key: str, *, limit: int = 100, before: int = NUMBER_MAX) -> list[int]:
    """Return the numbers of the newest ``limit`` records before ``before`` that touched a key, in ascending order."""
    statement = """
        SELECT number FROM timeline JOIN keys USING (id)
        WHERE key = ? AND number < ? ORDER BY number DESC LIMIT ?
    """
    return [number for (number,) in reversed(rows.select(statement, (key, before, _bounded(limit))))]


def timeline_length(rows: Rows, key: str, *, before: int = NUMBER_MAX) -> int:
    """Return how many records before ``before`` touched a key."""
    statement = "SELECT count(*) FROM timeline JOIN keys USING (id) WHERE key = ? AND number < ?"
    return int(rows.select(statement, (key, before))[0][0])


def list_rejections(rows: Rows, *, limit: int = 100, after: str = "") -> Page[Rejection]:
    """Return rejections, newest first."""
    before = _numbers(after)[0] or NUMBER_MAX
    statement = """
        SELECT number, time, verdict, field, reason, topic, key, source, content, partition, position, event_id
        FROM rejections WHERE number < ? ORDER BY number DESC
    """

    def show(row: ResultRow) -> tuple[str, Rejection]:
        rejection = Rejection(**dict(zip(Rejection.__struct_fields__, row, strict=True)))
        return str(rejection.number), rejection

    return _page(rows, statement, [before], show, limit)


def counts(rows: Rows) -> dict[str, int]:
    """Return counts of records; each key is an event type, or a name such as ``inputs.late``."""
    return dict(rows.select("SELECT name, count FROM counts ORDER BY name"))


def count_objects(rows: Rows) -> dict[str, int]:
    """Return the current numbers of rows in the tables ``bindings``, ``clusters`` and ``objects``, by table name."""
    return {
        table: int(rows.select(f"SELECT count(*) FROM {table}")[0][0])  # noqa: S608  # constants
        for table in ("bindings", "clusters", "objects")
    }


def unscheduled_bindings(rows: Rows) -> dict[str, int]:
    """Return the current numbers of bindings that could not be scheduled, by reason."""
    return dict(rows.select(_UNSCHEDULED))


def shard_steps(rows: Rows) -> dict[int, steps.ShardSteps]:
    """Return the last step of each shard; a shard without steps is absent."""
    return {shard: steps.decode(body) for shard, body in rows.select("SELECT shard, body FROM steps")}


def _page(
    rows: Rows,
    statement: str,
    where: list[Value],
    show: Callable[[ResultRow], tuple[str, _Item | None]],
    limit: int,
) -> Page[_Item]:
    limit = _bounded(limit)
    items: list[_Item] = []
    mark = ""
    for rows_read, row in enumerate(rows.scan(statement, where)):
        if len(items) == limit or rows_read == ROWS_READ_MAX:
            return Page(items, mark)
        mark, item = show(row)
        if item is not None:
            items.append(item)
    return Page(items)


def _bounded(limit: int) -> int:
    return max(1, min(limit, LIMIT_MAX))


def _mark(after: str) -> list[Value]:
    """Decode a continue token of objects; raises ValueError for other text."""
    if not after:
        return ["", "", "", 0]
    kind, namespace, name, key_id = msgspec.json.decode(after, type=tuple[str, str, str, int])
    return [kind, namespace, name, checked_int64(key_id)]


def _numbers(after: str) -> tuple[int, int]:
    """Decode the one or two numbers of a continue token; raises ValueError for other text."""
    first, _, second = (after or "0").partition(".")
    return checked_int64(int(first)), checked_int64(int(second or "0"))


def _labels(rows: Rows, key_id: int) -> Mapping[str, str]:
    matches = rows.select("SELECT labels FROM objects WHERE id = ?", (key_id,))
    return _LABELS.decode(matches[0][0]) if matches and matches[0][0] else {}
