"""One server for the tests that do not stop it."""

import gc
import warnings
from collections.abc import Iterator

import pytest

from tests.processes import Server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with its three members."""
    server = Server(tmp_path_factory.mktemp("clients"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def _left_connections() -> Iterator[None]:
    """Collect the library's broken connections here, so that no other test reports them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
