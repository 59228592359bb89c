"""One server for the tests that leave it running."""

from collections.abc import Iterator

import pytest

from tests.clients.servers import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with its three members."""
    found = Server(tmp_path_factory.mktemp("clients"))
    found.start()
    yield found
    found.stop()
