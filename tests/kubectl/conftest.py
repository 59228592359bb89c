"""One control plane on each log for all tests here; each test has a namespace of its own.

What people do runs on both logs; what depends on no log runs on SQLite.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.kubectl.commands import Kubectl
from tests.kubectl.places import Place, on_kafka, on_sqlite

_NAME_CHARS_MAX: Final = 63
_NEITHER: Final = re.compile(r"[^a-z0-9]+")
_ONE_LOG: Final = ["place_on_sqlite"]
_BOTH_LOGS: Final = [*_ONE_LOG, pytest.param("place_on_kafka", marks=pytest.mark.kafka)]
_ON_BOTH_LOGS: Final = frozenset(
    {
        "test_clusters",
        "test_dependencies",
        "test_guides",
        "test_karmadactl",
        "test_members",
        "test_overrides",
        "test_reading",
        "test_rights",
        "test_statuses",
        "test_tutorial",
        "test_watching",
        "test_writing",
    }
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Says on which logs the tests of a module run."""
    if "place" in metafunc.fixturenames:
        is_on_both = metafunc.definition.path.stem in _ON_BOTH_LOGS
        metafunc.parametrize("place", _BOTH_LOGS if is_on_both else _ONE_LOG, indirect=True)


@pytest.fixture(scope="session")
def place_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One process with its three members."""
    with on_sqlite(tmp_path_factory.mktemp("kubectl")) as found:
        yield found


@pytest.fixture(scope="session")
def place_on_kafka(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Two workers and two replicas."""
    with on_kafka(kafka, tmp_path_factory.mktemp("kubectl-on-kafka")) as found:
        yield found


@pytest.fixture(scope="session")
def served(place_on_sqlite: Place) -> Path:
    """The data directory of the one process."""
    return place_on_sqlite.reading.parent


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kubectl keeps what it learned of the server."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Place:
    """A control plane on either log."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Place)
    return found


@pytest.fixture
def kubectl(place: Place, home: Path, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    """Kubectl in a new namespace, which goes in the end with all that is in it."""
    name = _NEITHER.sub("-", str(request.node.name))[:_NAME_CHARS_MAX].strip("-")
    found = place.kubectl(home, name)
    found("create", "namespace", name)
    yield found
    found("delete", "namespace", name)
