"""Projection of owner references: the owners that objects name in their metadata; feeds the garbage collector."""

from collections.abc import Sequence
from typing import Final

from events import shapes
from events.json_values import decoded, objects_at
from events.kube_objects import KubeObject
from projections import changes
from projections.port import Queryable, Rows

SCHEMA: Final = """
CREATE TABLE owner_references (
    id INTEGER NOT NULL,
    owner TEXT NOT NULL,
    PRIMARY KEY (id, owner)
) WITHOUT ROWID;
CREATE INDEX owner_references_by_owner ON owner_references (owner);
"""
_FIELD: Final = b"ownerReferences"
_DELETE: Final = "DELETE FROM owner_references WHERE id = ?"
_INSERT: Final = "INSERT INTO owner_references VALUES (?, ?)"
_REFERENCES: Final = "SELECT api_version, kind, name, namespace FROM objects WHERE id IN"
_OWNED: Final = "SELECT id FROM owner_references WHERE owner = ?"
_OWNING: Final = "SELECT id FROM owner_references"
_EXISTS: Final = "SELECT 1 FROM owner_references LIMIT 1"
_DELETED: Final = "SELECT body FROM changes WHERE place >= ? AND place < ? AND verb = ?"


class OwnerReferences:
    """Collects the owners of written objects, by the owners' uids."""

    def __init__(self) -> None:
        self._changed: dict[int, frozenset[str]] = {}

    def put(self, key_id: int, manifest: bytes) -> None:
        """Store the owners in a manifest; values that are not references are left out."""
        owners: frozenset[str] = frozenset()
        # Searching the bytes first avoids decoding nearly every object.
        if _FIELD in manifest:
            references = objects_at(decoded(manifest), "metadata", _FIELD.decode())
            uids = (reference.get("uid") for reference in references)
            owners = frozenset(uid for uid in uids if isinstance(uid, str) and uid)
        self._changed[key_id] = owners

    def remove(self, key_id: int) -> None:
        self._changed[key_id] = frozenset()

    def flush(self, rows: Rows) -> None:
        changed, self._changed = self._changed, {}
        rows.write(_DELETE, ((key_id,) for key_id in changed))
        rows.write(
            _INSERT, ((key_id, owner) for key_id, owners in changed.items() for owner in sorted(owners))
        )


def is_any(rows: Queryable) -> bool:
    """Whether any object has an owner."""
    return bool(rows.select(_EXISTS))


def dependents(rows: Queryable, owner: str) -> list[shapes.WorkloadRef]:
    """Return the objects that name an owner with this uid."""
    return _referenced(rows, _OWNED, owner)


def ids(rows: Queryable, owner: str) -> list[int]:
    """Return the key ids of the objects that name an owner with this uid."""
    return [int(key_id) for (key_id,) in rows.select(_OWNED, (owner,))]


def changed_ids(rows: Queryable, span: tuple[int, int]) -> set[int]:
    """Return the key ids of the objects that changed after the first number, up to the second."""
    return {int(key_id) for (key_id,) in rows.select(changes.IN_RANGE, changes.bounds(*span))}


def changed_dependents(rows: Queryable, span: tuple[int, int] | None) -> list[shapes.WorkloadRef]:
    """Return the objects with owners.

    With ``span``, return only those that changed after the first number, up to and including the second.
    """
    if span is None:
        return _referenced(rows, _OWNING)
    return _referenced(rows, f"{_OWNING} WHERE id IN ({changes.IN_RANGE})", *changes.bounds(*span))


def containing(
    rows: Queryable, texts: Sequence[str], span: tuple[int, int] | None
) -> list[shapes.WorkloadRef]:
    """Return the objects whose manifests contain one of these texts.

    With ``span``, return only objects that changed after the first number, up to and including the second.
    """
    matches = " OR ".join(["instr(manifest, ?)"] * len(texts))
    statement = f"SELECT id FROM objects WHERE ({matches})"  # noqa: S608  # constants
    if span is None:
        return _referenced(rows, statement, *texts)
    return _referenced(rows, f"{statement} AND id IN ({changes.IN_RANGE})", *texts, *changes.bounds(*span))


def deleted(rows: Queryable, span: tuple[int, int]) -> list[KubeObject]:
    """Return the last documents of the objects that were deleted after the first number, up to the second."""
    selected = rows.select(_DELETED, (*changes.bounds(*span), changes.DELETED))
    return [KubeObject.from_json(body) for (body,) in selected if body is not None]


def _referenced(rows: Queryable, ids: str, *where: str | int) -> list[shapes.WorkloadRef]:
    """Return references to the objects whose key ids the query ``ids`` returns."""
    return [
        shapes.WorkloadRef(api_version=api_version, kind=kind, name=name, namespace=namespace)
        for api_version, kind, name, namespace in rows.select(f"{_REFERENCES} ({ids}) ORDER BY id", where)
    ]
