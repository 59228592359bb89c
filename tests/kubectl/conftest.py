"""One server for all tests here; each test has a namespace of its own."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli.servers import running
from tests.kubectl.commands import Kubectl

_NAME_CHARS_MAX: Final = 63
_NEITHER: Final = re.compile(r"[^a-z0-9]+")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a running server with its three members."""
    directory = tmp_path_factory.mktemp("kubectl")
    with running(directory):
        yield directory


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kubectl keeps what it learned of the server."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(served: Path, home: Path, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """Kubectl in a new namespace, which goes in the end with all that is in it."""
    name = _NEITHER.sub("-", str(request.node.name))[:_NAME_CHARS_MAX].strip("-")
    found = Kubectl(served / "kubeconfig", home, name)
    found("create", "namespace", name)
    yield found
    found("delete", "namespace", name)
