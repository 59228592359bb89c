"""A server of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A running server, stopped after the test."""
    server = Server(tmp_path / "data")
    server.start()
    yield server
    server.kill()
