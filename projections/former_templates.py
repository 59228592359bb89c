"""Former versions of templates, kept as long as works contain them.

When a template changes, its works keep the former version until new ones are sent. None is sent to a cluster from which
the workload is being evicted, nor to any cluster while no policy claims the template.
"""

from typing import Final

from projections.documents.objects import ObjectRow
from projections.port import Queryable, Rows
from projections.works import Work

SCHEMA: Final = """
CREATE TABLE former_templates (
    id INTEGER NOT NULL,
    digest TEXT NOT NULL,
    works INTEGER NOT NULL,
    uid TEXT NOT NULL,
    generation INTEGER NOT NULL,
    manifest BLOB NOT NULL,
    PRIMARY KEY (id, digest)
) WITHOUT ROWID;
"""
_UPSERT: Final = "INSERT OR REPLACE INTO former_templates VALUES (?, ?, ?, ?, ?, ?)"
_COUNT: Final = "UPDATE former_templates SET works = ? WHERE id = ? AND digest = ?"
_DELETE: Final = "DELETE FROM former_templates WHERE id = ? AND digest = ?"
_STORED: Final = "SELECT uid, generation, manifest FROM former_templates WHERE id = ? AND digest = ?"

Version = tuple[int, str]
"""Key id of a template, and digest of its manifest."""


def in_work(rows: Queryable, key_id: int, work: Work, template: ObjectRow) -> ObjectRow:
    """Return the version of a template that a work contains, given the current one.

    A suspended work is shown with the current version, which it will have when it is sent.
    """
    former = [] if work.suspended else rows.select(_STORED, (key_id, work.digest))
    for uid, generation, manifest in former:
        return template._replace(uid=uid, generation=generation, manifest=manifest)
    return template


class FormerTemplates:
    """Counts the works that contain a former version, and forgets versions that none contains."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._stored: dict[Version, int] | None = None
        self._added: dict[Version, ObjectRow] = {}
        self._changed: set[Version] = set()

    def __contains__(self, version: Version) -> bool:
        return version in self._works

    def keep(self, version: Version, template: ObjectRow, works: int) -> None:
        """Keep a version of a template for a number of works."""
        self._works[version] = works
        self._added[version] = template
        self._changed.add(version)

    def drop(self, version: Version) -> None:
        """Forget a version, because it is the current one again."""
        self._count(version, 0)

    def add(self, version: Version, works: int) -> None:
        """Add to the number of works that contain a version, if it is a former one."""
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
            rows = self._rows.select("SELECT id, digest, works FROM former_templates")
            self._stored = {(key_id, digest): works for key_id, digest, works in rows}
        return self._stored

    def _count(self, version: Version, works: int) -> None:
        if works > 0:
            self._works[version] = works
        elif self._works.pop(version, None) is None:
            return
        else:
            self._added.pop(version, None)
        self._changed.add(version)
