"""One server for all tests of a module; each test restores it, or uses its own object names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import clearing
from tests.cli.servers import Shell, running


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a running server."""
    directory = tmp_path_factory.mktemp("data")
    with running(directory):
        yield directory


@pytest.fixture
def shell(served: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs commands against the running server."""
    return Shell(served, capsys)


@pytest.fixture
def cleared(shell: Shell, tmp_path: Path) -> Iterator[None]:
    """Leave a server without objects, whose members are equal and run nothing."""
    yield
    clearing.cleared(shell, tmp_path / "left.json")
