"""The table of placements."""

import tracemalloc

import msgspec

from projections.placements import Placements, stored
from projections.store import Store


def test_stored_placements_are_not_kept_in_memory() -> None:
    store = Store()
    with store.writing() as rows:
        view = Placements(rows)
        tracemalloc.start()
        try:
            digests = [view.put(_large(index)) for index in range(50)]
            view.flush(rows)
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert view.put(_large(7)) == digests[7]
        assert stored(rows, digests[7]) == bytes(_large(7))
    assert used < 1_000_000
    store.close()


def _large(index: int) -> msgspec.Raw:
    """A placement as large as one that names thousands of clusters."""
    return msgspec.Raw(msgspec.json.encode({"clusterAffinity": {"clusterNames": [str(index) * 100_000]}}))
