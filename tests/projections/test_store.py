"""The file of the tables, read while it is replaced or damaged."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from engine import private_files
from projections import changes, store
from projections.port import ProjectionError
from tests import read_only


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / store.FILE


@pytest.fixture
def reader(path: Path) -> Iterator[store.Reader]:
    store.Store(path).close()
    reader = store.Reader(path)
    yield reader
    reader.close()


@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_deleted_tables_are_read_on_but_not_mixed_with_rebuilt_ones(
    is_rebuilt: bool, reader: store.Reader, path: Path
) -> None:
    private_files.remove_database(path)
    if is_rebuilt:
        store.Store(path).close()

    with reader.reading() as rows:
        assert changes.checkpoint(rows) == 0
        with pytest.raises(ProjectionError, match="is being rebuilt; try again later"), reader.reading():
            pass

    assert path.exists() is is_rebuilt
    with reader.reading() as rows:
        assert changes.checkpoint(rows) == 0


def test_tables_on_a_read_only_medium_are_readable() -> None:
    def is_readable(directory: Path) -> bool:
        with store.Reader(directory / store.FILE).reading() as rows:
            return changes.checkpoint(rows) == 0

    assert read_only.is_read(lambda directory: store.Store(directory / store.FILE).close(), is_readable)


def test_tables_that_cannot_be_opened_are_reported(path: Path) -> None:
    path.mkdir()
    with pytest.raises(ProjectionError, match="can't be opened"):
        store.Reader(path)


def test_several_threads_read_one_file(reader: store.Reader) -> None:
    with ExitStack() as reads:
        for _ in range(3):
            assert changes.checkpoint(reads.enter_context(reader.reading())) == 0


def test_damage_found_by_a_reader_is_reported(path: Path, reader: store.Reader) -> None:
    size = path.stat().st_size
    path.write_bytes(b"\xff" * size)

    with pytest.raises(ProjectionError, match="is damaged"), reader.reading() as rows:
        changes.checkpoint(rows)
