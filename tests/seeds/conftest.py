"""One server for all documents; each test leaves it empty."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.servers import running
from tests.seeds.users import User


@pytest.fixture(scope="session")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a running server with its three members."""
    directory = tmp_path_factory.mktemp("seeds")
    started_s = time.monotonic()
    with running(directory):
        print(f"ready {time.monotonic() - started_s:.2f} s after the start of the process")  # noqa: T201
        yield directory


@pytest.fixture
def user(documented: Path) -> Iterator[User]:
    """A user of the server."""
    found = User(documented)
    yield found
    found.clean_up()
