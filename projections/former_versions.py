"""Former versions of templates, namespaces and override policies, kept as long as works contain them.

When such an object changes, its works contain the former version until new works are sent. No new work is sent to a
cluster from which the workload is being evicted, nor to any cluster while no policy claims the template or while the
namespace is not propagated.
"""

from typing import Final, NamedTuple

from events import keys, kube_objects, shapes
from projections.objects import ObjectRow
from projections.port import Queryable, Rows
from projections.works import Work

SCHEMA: Final = """
CREATE TABLE former_versions (
    id INTEGER NOT NULL,
    mark TEXT NOT NULL,
    works INTEGER NOT NULL,
    uid TEXT NOT NULL,
    generation INTEGER NOT NULL,
    manifest BLOB NOT NULL,
    PRIMARY KEY (id, mark)
) WITHOUT ROWID;
"""
_UPSERT: Final = "INSERT OR REPLACE INTO former_versions VALUES (?, ?, ?, ?, ?, ?)"
_COUNT: Final = "UPDATE former_versions SET works = ? WHERE id = ? AND mark = ?"
_DELETE: Final = "DELETE FROM former_versions WHERE id = ? AND mark = ?"
_TEMPLATE: Final = "SELECT uid, generation, manifest FROM former_versions WHERE id = ? AND mark = ?"
_POLICY: Final = """
SELECT manifest FROM former_versions f JOIN keys k ON k.id = f.id WHERE k.key = ? AND mark = ?
"""
MARK_OF_NAMESPACE: Final = ""
"""The mark of a namespace's last propagated version; it equals the ``digest`` of the works of namespaces."""


class Version(NamedTuple):
    """A version of an object: the key id of the object, and the mark that identifies the version."""

    key_id: int
    mark: str


def mark_of_template(manifest: bytes) -> str:
    """Return the mark of a template's version: the ``digest`` in the works that contain this version."""
    return kube_objects.manifest_digest(manifest)


def mark_of_policy(offset: int) -> str:
    """Return the mark of the version of an override policy that was written at this offset."""
    return str(offset)


def policy_key(ref: shapes.OverrideRef) -> str:
    """Return the record key of an override policy."""
    return keys.object_key(ref.kind, ref.namespace, ref.name)


def template_in(rows: Queryable, key_id: int, work: Work, current: ObjectRow) -> ObjectRow:
    """Return the template's row in the version that a work contains; ``current`` is the row of the current version.

    For a suspended work return the current version, which the work will contain when it is sent.
    """
    former = [] if work.suspended else rows.select(_TEMPLATE, (key_id, work.digest))
    for uid, generation, manifest in former:
        return current._replace(uid=uid, generation=generation, manifest=manifest)
    return current


def policy_in(rows: Queryable, ref: shapes.OverrideRef) -> bytes | None:
    """Return the manifest of the policy version that ``ref`` names; None if this is not a stored former version."""
    matches = rows.select(_POLICY, (policy_key(ref), mark_of_policy(ref.offset)))
    return matches[0][0] if matches else None


class FormerVersions:
    """Counts the works that contain each former version, and deletes versions that no work contains."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._stored: dict[Version, int] | None = None
        self._added: dict[Version, ObjectRow] = {}
        self._changed: set[Version] = set()

    def __len__(self) -> int:
        return len(self._works)

    def __contains__(self, version: Version) -> bool:
        return version in self._works

    def keep(self, version: Version, row: ObjectRow, works: int) -> None:
        """Keep a former version of an object; ``works`` is the number of works that contain the version."""
        self._works[version] = works
        self._added[version] = row
        self._changed.add(version)

    def drop(self, version: Version) -> None:
        """Delete a former version, because it has become the current version again."""
        self._count(version, 0)

    def add(self, version: Version, works: int) -> None:
        """Add ``works`` (may be negative) to the number of works that contain a version, if it is a former one."""
        if version in self._works:
            self._count(version, self._works[version] + works)

    def flush(self, rows: Rows) -> None:
        stored = self._works
        rows.write(_DELETE, [version for version in sorted(self._changed) if version not in stored])
        kept = [version for version in sorted(self._changed) if version in stored]
        rows.write(_COUNT, [(stored[version], *version) for version in kept if version not in self._added])
        rows.write(
            _UPSERT,
            [
                (*version, stored[version], row.uid, row.generation, row.manifest)
                for version in kept
                if (row := self._added.get(version)) is not None
            ],
        )
        self._added, self._changed = {}, set()

    @property
    def _works(self) -> dict[Version, int]:
        if self._stored is None:
            rows = self._rows.select("SELECT id, mark, works FROM former_versions")
            self._stored = {Version(key_id, mark): works for key_id, mark, works in rows}
        return self._stored

    def _count(self, version: Version, works: int) -> None:
        if works > 0:
            self._works[version] = works
        elif self._works.pop(version, None) is None:
            return
        else:
            self._added.pop(version, None)
        self._changed.add(version)
