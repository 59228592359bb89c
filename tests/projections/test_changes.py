"""The table of changes: in log order, and compact on disk."""

from pathlib import Path
from typing import Final

from events.kube_objects import KubeObject
from projections import changes, store

ROWS: Final = 2_000
LAST: Final = KubeObject({"spec": "x" * 1_100})
"""A document as large as that of a usual Work."""


def test_documents_of_deleted_objects_fill_their_pages(tmp_path: Path) -> None:
    views = store.Store(tmp_path / store.FILE)
    told = changes.Changes()
    for start in range(0, ROWS, 100):
        with views.writing() as rows:
            for number in range(start, start + 100):
                told.remove(number, changes.WORK, number % 300, LAST)
                told.seen(number)
            told.flush(rows)
    views.close()
    assert (tmp_path / store.FILE).stat().st_size < ROWS * 1_500


def test_changes_of_one_record_are_ordered_by_kind() -> None:
    views = store.Store()
    told = changes.Changes()
    with views.writing() as rows:
        told.touch(7, changes.WORK, 2, member=9)
        told.touch(7, changes.RESOURCE_BINDING, 2)
        told.touch(7, changes.WORK, 2, member=8, added=True)
        told.touch(8, changes.WORK, 1)
        told.flush(rows)
    with views.reading() as rows:
        found = changes.between(rows, 6, 7)
        later = changes.between(rows, 7, 8, changes.WORK)
    assert [(each.number, each.kind, each.member, each.verb) for each in found] == [
        (7, changes.RESOURCE_BINDING, 0, changes.MODIFIED),
        (7, changes.WORK, 8, changes.ADDED),
        (7, changes.WORK, 9, changes.MODIFIED),
    ]
    assert [(each.number, each.key_id) for each in later] == [(8, 1)]
