"""Objects of one kind as in the Kubernetes API: one by name, pages ordered by name, or several by key.

Objects written by clients share one table; clusters, bindings and works are derived and have their own. A request
names one version of a kind, in which the objects are rendered.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from events import keys, shapes, topics
from events.kube_objects import KubeObject
from projections import bindings, changes, clusters, former_versions, rebalancers, works
from projections.documents import remedies
from projections.documents.bindings import binding_document, binding_row
from projections.documents.clusters import cluster_document
from projections.documents.objects import object_document
from projections.documents.works import cluster_of, work_object
from projections.objects import COLUMNS, ObjectRow
from projections.placements import stored as stored_placement
from projections.port import ResultRow, Rows, Value

_INT64_MAX: Final = 2**63 - 1
OBJECTS: Final = f"""
SELECT o.id, b.body, r.body, key, {COLUMNS} FROM objects o
JOIN keys USING (id) LEFT JOIN bindings b USING (id) LEFT JOIN rebalancers r USING (id)
"""  # noqa: S608  # constants
_BINDINGS: Final = "SELECT b.id, key, body FROM bindings b JOIN keys USING (id)"
_CLUSTERS: Final = "SELECT c.id, key, body FROM clusters c JOIN keys USING (id)"
_WORK: Final = """
SELECT w.id, c.key, w.name, w.body FROM works w JOIN keys c ON c.id = w.cluster WHERE w.id = ? AND w.cluster = ?
"""
# Without the index hint SQLite uses the primary key and reads all works of the cluster, even to find one
# name.
_WORKS: Final = """
SELECT w.id, c.key, w.name, w.body FROM works w INDEXED BY works_by_name JOIN keys c ON c.id = w.cluster
WHERE w.cluster = ?
"""
_CONTAINING: Final = """
SELECT namespace, name FROM objects WHERE api_version = ? AND kind = ? AND instr(manifest, ?)
"""
_CLUSTER_KEY: Final = "SELECT id, key FROM keys WHERE key = ?"
# Each recursion finds the next cluster in the index, so the cost does not grow with the number of works.
_CLUSTERS_WITH_WORKS: Final = """
WITH RECURSIVE found (id) AS (
    SELECT min(cluster) FROM works
    UNION ALL SELECT (SELECT min(cluster) FROM works WHERE cluster > found.id) FROM found WHERE found.id IS NOT NULL
)
SELECT id, key FROM found JOIN keys USING (id) ORDER BY key
"""


class Kind(NamedTuple):
    """A kind in the requested version."""

    api_version: str
    kind: str

    @property
    def of_change(self) -> str:
        """The name of this kind in the projection of changes."""
        return changes.kind_of(self.api_version, self.kind)


class Selection(Struct, frozen=True, kw_only=True):
    """Selects objects of a kind: an empty namespace or name matches any.

    ``show`` maps a stored object to the object to list, or to None to omit it. With ``brief`` a binding has only the
    fields of a table row.
    """

    kind: Kind
    namespace: str = ""
    name: str = ""
    brief: bool = False
    show: Callable[[KubeObject], KubeObject | None] = lambda stored: stored


class Page(Struct, frozen=True):
    """A page of results; ``after`` is the continue token for the next page, empty on the last page.

    ``left`` of a first page is the number of objects on later pages, including those that ``show`` will omit; 0 on
    later pages or if not counted.
    """

    items: list[KubeObject]
    after: str = ""
    left: int = 0


_DERIVED: Final = (
    changes.CLUSTER,
    changes.RESOURCE_BINDING,
    changes.CLUSTER_RESOURCE_BINDING,
    changes.WORK,
)

ObjectKey = tuple[int, int]
"""Key id of an object, and key id of its cluster for works (0 for all others)."""


def get(rows: Rows, kind: Kind, namespace: str, name: str) -> KubeObject | None:
    """Return the object with this name; None if there is none."""
    page_found = page(rows, Selection(kind=kind, namespace=namespace, name=name), limit=1)
    return page_found.items[0] if page_found.items else None


def page(rows: Rows, selection: Selection, *, limit: int = 0, after: str = "") -> Page:
    """Return a page of the selected objects, ordered by namespace and name; ``limit`` 0 means all."""
    items: list[KubeObject] = []
    mark = ""
    for result in _scan(rows, selection, after):
        if limit and len(items) == limit:
            return Page(items, mark, 0 if after else _remaining(rows, selection, mark))
        mark, stored = result
        item = None if stored is None else selection.show(stored)
        if item is not None:
            items.append(item)
    return Page(items)


def following(rows: Rows, selection: Selection, name: str) -> Iterator[KubeObject]:
    """Yield the selected objects that have no namespace, ordered by name, beginning at ``name``."""
    after = msgspec.json.encode(("", name, 0)).decode()
    return (item for _mark, item in _scan(rows, selection, after) if item is not None)


def start(after: str) -> tuple[str, str]:
    """Return the namespace and name after which the page of a continue token begins; empty for the first page."""
    return _read_mark(after)[:2] if after else ("", "")


def with_others(
    rows: Rows, kind: Kind, stored: Page, others: Iterable[KubeObject], *, limit: int, after: str
) -> Page:
    """Return the page ``stored`` with ``others`` added, in the same order and with the same limit.

    ``others`` are ordered by namespace and name; those with the name of a stored object are omitted.
    """
    first = start(after)
    later = (item for item in others if item.key > first)
    new = (item for item in later if get(rows, kind, *item.key) is None)
    # Only a first page counts the objects that follow; a later page looks up at most limit + 1 of `others`.
    added = list(islice(new, limit + 1 if after and limit else None))
    if not added:
        return stored
    items = sorted([*stored.items, *added], key=attrgetter("key"))
    shown = items[:limit] if limit else items
    if shown == items and not stored.after:
        return Page(items)
    mark = msgspec.json.encode((*shown[-1].key, _INT64_MAX)).decode()
    return Page(shown, mark, 0 if after else stored.left + len(items) - len(shown))


def containing(rows: Rows, kind: Kind, text: str, span: tuple[int, int] | None) -> list[tuple[str, str]]:
    """Return namespace and name of objects of a kind whose manifests contain a text.

    With ``span``, return only objects that changed after the first number, up to and including the second.
    """
    within = f" AND id IN ({changes.IN_RANGE})" if span else ""
    where = (*kind, text, *(changes.bounds(*span) if span else ()))
    return [(namespace, name) for namespace, name in rows.select(_CONTAINING + within, where)]


def by_keys(rows: Rows, kind: Kind, object_keys: Iterable[ObjectKey]) -> dict[ObjectKey, KubeObject]:
    """Return the objects that exist among those with these keys, by key."""
    items: dict[ObjectKey, KubeObject] = {}
    for where in object_keys:
        item = _at(rows, kind, where)
        if item is not None:
            items[where] = item
    return items


def last(rows: Rows, kind: Kind, document: bytes) -> KubeObject:
    """Return the last version of a deleted object from its recorded document, which lacks actions of Remedies."""
    value = KubeObject.from_json(document)
    return remedies.with_actions(value, remedies.read(rows)) if kind.of_change == changes.CLUSTER else value


def _scan(rows: Rows, selection: Selection, after: str) -> Iterator[tuple[str, KubeObject | None]]:
    match selection.kind.of_change:
        case changes.CLUSTER:
            return _clusters(rows, selection, after)
        case changes.RESOURCE_BINDING | changes.CLUSTER_RESOURCE_BINDING:
            return _bindings(rows, selection, after)
        case changes.WORK:
            return _works(rows, selection, after)
        case _:
            return _objects(rows, selection, after)


def _at(rows: Rows, kind: Kind, object_key: ObjectKey) -> KubeObject | None:
    key_id, member = object_key
    match kind.of_change:
        case changes.CLUSTER:
            matches = rows.select(f"{_CLUSTERS} WHERE c.id = ?", (key_id,))
            return _cluster(matches[0], remedies.read(rows)) if matches else None
        case changes.RESOURCE_BINDING | changes.CLUSTER_RESOURCE_BINDING:
            matches = rows.select(f"{_BINDINGS} WHERE b.id = ?", (key_id,))
            return binding_document_of(rows, bindings.decode(matches[0][2]), {}) if matches else None
        case changes.WORK:
            matches = rows.select(_WORK, (key_id, member))
            return _work(rows, matches[0]) if matches else None
        case _:
            matches = rows.select(f"{OBJECTS} WHERE o.id = ?", (key_id,))
            return _object(matches[0], kind) if matches else None


def _objects(rows: Rows, selection: Selection, after: str) -> Iterator[tuple[str, KubeObject | None]]:
    statement, where = f"{OBJECTS} WHERE kind = ?", [selection.kind.kind]
    for column in ("namespace", "name"):
        value: str = getattr(selection, column)
        if value:
            statement += f" AND {column} = ?"
            where.append(value)
    values: list[Value] = list(where)
    if after:
        namespace, name, key_id = _read_mark(after)
        statement += " AND (namespace, name, o.id) > (?, ?, ?)"
        values += [namespace, name, key_id]
    for row in rows.scan(f"{statement} ORDER BY namespace, name, o.id", values):
        item = _object(row, selection.kind)
        mark = msgspec.json.encode((row[5], row[6], row[0])).decode()
        yield mark, item


def _remaining(rows: Rows, selection: Selection, mark: str) -> int:
    """Return the number of objects after a continue token; 0 for derived kinds."""
    if selection.kind.of_change in _DERIVED:
        return 0
    group, slash, _version = selection.kind.api_version.rpartition("/")
    statement = "SELECT count(*) FROM objects WHERE kind = ? AND substr(api_version, 1, ?) = ?"
    values: list[Value] = [selection.kind.kind, len(group + slash), group + slash]
    if not group:
        statement += " AND instr(api_version, '/') = 0"
    if selection.namespace:
        statement += " AND namespace = ?"
        values.append(selection.namespace)
    namespace, name, key_id = _read_mark(mark)
    ((count,),) = rows.select(
        f"{statement} AND (namespace, name, id) > (?, ?, ?)", (*values, namespace, name, key_id)
    )
    return int(count)


def _object(row: ResultRow, kind: Kind) -> KubeObject | None:
    stored = object_row(row)
    if changes.kind_of(stored.api_version, stored.kind) != kind.of_change:
        return None  # a kind of the same name in another group
    return object_document_of(row, api_version=kind.api_version)


def object_row(row: ResultRow) -> ObjectRow:
    """Return the object's row in a result of ``OBJECTS``."""
    return ObjectRow(*row[3:])


def object_document_of(row: ResultRow, *, managed: bool = True, api_version: str = "") -> KubeObject:
    """Render an object from a result of ``OBJECTS``; ``managed`` adds ``managedFields``.

    ``api_version``, if set, replaces that of the manifest.
    """
    _id, binding_body, rebalancer_body, *fields = row
    binding = bindings.decode(binding_body) if binding_body else None
    rebalancer = rebalancers.decode(rebalancer_body) if rebalancer_body else None
    return object_document(ObjectRow(*fields), binding, rebalancer, managed=managed, api_version=api_version)


def namespace_bounds(namespace: str) -> tuple[str, str]:
    """Return the range, end exclusive, that has the keys of all bindings of a namespace."""
    # '0' is the character after '/'.
    return f"{namespace}/", f"{namespace}0"


def _bindings(rows: Rows, selection: Selection, after: str) -> Iterator[tuple[str, KubeObject | None]]:
    statement = f"{_BINDINGS} WHERE key > ?"
    where: list[Value] = [after]
    if selection.kind.of_change == changes.CLUSTER_RESOURCE_BINDING:
        statement += " AND instr(key, '/') = 0"
    elif selection.namespace:
        statement += " AND key > ? AND key < ?"
        where += namespace_bounds(selection.namespace)
    else:
        statement += " AND instr(key, '/') > 0"
    if selection.name:
        statement += " AND key = ?"
        where.append(f"{selection.namespace}/{selection.name}" if selection.namespace else selection.name)
    placements: dict[str, bytes | None] = {}
    for row in rows.scan(f"{statement} ORDER BY key", where):
        yield row[1], binding_document_of(rows, bindings.decode(row[2]), placements, brief=selection.brief)


def binding_document_of(
    rows: Rows,
    binding: bindings.Binding,
    placements: dict[str, bytes | None],
    *,
    managed: bool = True,
    brief: bool = False,
) -> KubeObject:
    """Render a binding; ``placements`` caches placements by digest, since many bindings share them."""
    for digest in (binding.placement, binding.applied):
        if digest not in placements:
            placements[digest] = stored_placement(rows, digest)
    dependents = bindings.dependents(rows, binding)
    placement, applied = placements[binding.placement], placements[binding.applied]
    if brief:
        return binding_row(binding, applied, dependents)
    return binding_document(binding, placement, applied, managed=managed, dependents=dependents)


def _clusters(rows: Rows, selection: Selection, after: str) -> Iterator[tuple[str, KubeObject | None]]:
    statement = f"{_CLUSTERS} WHERE key > ?"
    where: list[Value] = [after]
    if selection.name:
        statement += " AND key = ?"
        where.append(keys.cluster_key(selection.name))
    known = remedies.read(rows)
    for row in rows.scan(f"{statement} ORDER BY key", where):
        yield row[1], _cluster(row, known)


def _cluster(row: ResultRow, known: list[remedies.Remedy]) -> KubeObject:
    return remedies.with_actions(cluster_document(clusters.decode(row[2]), managed=True), known)


def _works(rows: Rows, selection: Selection, after: str) -> Iterator[tuple[str, KubeObject | None]]:
    reached, last_name, last_id = _read_mark(after) if after else ("", "", 0)
    for member, member_key in _clusters_with_works(rows, selection.namespace):
        if member_key < reached:
            continue
        statement = _WORKS
        where: list[Value] = [member]
        if selection.name:
            statement += " AND w.name = ?"
            where.append(selection.name)
        if member_key == reached:
            statement += " AND (w.name, w.id) > (?, ?)"
            where += [last_name, last_id]
        for row in rows.scan(f"{statement} ORDER BY w.name, w.id", where):
            mark = msgspec.json.encode((member_key, row[2], row[0])).decode()
            yield mark, _work(rows, row)


def _clusters_with_works(rows: Rows, namespace: str) -> list[tuple[int, str]]:
    """Return id and key of the cluster whose Works are in ``namespace``; without it, of all clusters with Works."""
    if not namespace:
        return rows.select(_CLUSTERS_WITH_WORKS)
    member = cluster_of(namespace)
    return [] if member is None else rows.select(_CLUSTER_KEY, (keys.cluster_key(member),))


def _work(rows: Rows, row: ResultRow) -> KubeObject:
    key_id, member_key, _name, body = row
    matches = rows.select(f"{OBJECTS} WHERE o.id = ?", (key_id,))
    template = object_row(matches[0]) if matches else None
    name = str(member_key).removeprefix(keys.cluster_key(""))
    work = works.decode(body)
    if template is not None:
        template = former_versions.template_in(rows, key_id, work, template)
    policies = {ref: _policy(rows, ref, work) for ref in work.overrides}
    return work_object(name, work, template, policies)


def _policy(rows: Rows, ref: shapes.OverrideRef, work: works.Work) -> bytes:
    """Return the version of an override policy that a work contains, else the current version, else an empty object."""
    matches = rows.select(
        "SELECT version, manifest FROM objects WHERE kind = ? AND namespace = ? AND name = ? AND topic = ?",
        (ref.kind, ref.namespace, ref.name, topics.POLICIES),
    )
    version, current = matches[0] if matches else (0, b"{}")
    is_current = work.suspended or version == ref.offset + 1
    return current if is_current else former_versions.policy_in(rows, ref) or current


def _read_mark(after: str) -> tuple[str, str, int]:
    """Decode a continue token; raises ValueError for other text."""
    namespace, name, key_id = msgspec.json.decode(after, type=tuple[str, str, int])
    return namespace, name, checked_int64(key_id)


def checked_int64(number: int) -> int:
    """Return a number of a continue token; raises ValueError if it has more than 64 bits."""
    if not -_INT64_MAX <= number <= _INT64_MAX:
        message = f"{number} has more than 64 bits"
        raise ValueError(message)
    return number
