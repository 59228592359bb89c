"""One control plane per log backend for all tests here; each test has its own namespace.

Tests of writes, watches, clusters and the tutorial run on both backends, all others on SQLite only. The guides
are in ``tests/seeds``.
"""

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.kubectl import streams
from tests.kubectl.commands import Kubectl
from tests.kubectl.control_planes import ControlPlane, on_kafka, on_sqlite

_WORKLOADS: Final = (
    *(f"/apis/apps/v1/namespaces/{{}}/{kind}" for kind in ("deployments", "statefulsets", "daemonsets")),
    *(f"/apis/batch/v1/namespaces/{{}}/{kind}" for kind in ("jobs", "cronjobs")),
    "/api/v1/namespaces/{}/pods",
)
_AS_KUBECTL: Final = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
_TEST_CHARS_MAX: Final = 54
"""A namespace has at most 63 characters; nine are for the checksum."""

_NEITHER: Final = re.compile(r"[^a-z0-9]+")
_ONE_LOG: Final = ["control_plane_on_sqlite"]
_BOTH_LOGS: Final = [*_ONE_LOG, pytest.param("control_plane_on_kafka", marks=pytest.mark.kafka)]
_ON_BOTH_LOGS: Final = frozenset(
    {
        "test_clusters",
        "test_dependencies",
        "test_karmadactl",
        "test_members",
        "test_plans",
        "test_tutorial",
        "test_watching",
        "test_writing",
    }
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests with the log backends of their module."""
    if "control_plane" in metafunc.fixturenames:
        is_on_both = metafunc.definition.path.stem in _ON_BOTH_LOGS
        metafunc.parametrize("control_plane", _BOTH_LOGS if is_on_both else _ONE_LOG, indirect=True)


@pytest.fixture(scope="package")
def control_plane_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One process with three members."""
    with on_sqlite(tmp_path_factory.mktemp("kubectl")) as control_plane:
        yield control_plane


@pytest.fixture(scope="package")
def control_plane_on_kafka(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Two workers and two replicas."""
    with on_kafka(kafka, tmp_path_factory.mktemp("kubectl-on-kafka")) as control_plane:
        yield control_plane


@pytest.fixture(scope="package")
def served(control_plane_on_sqlite: ControlPlane) -> Path:
    """The data directory of the process on SQLite."""
    return control_plane_on_sqlite.reading.parent


@pytest.fixture(scope="package")
def home_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home directory in which kubectl caches discovery documents."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def control_plane(request: pytest.FixtureRequest) -> ControlPlane:
    """A control plane on the log backend of the test."""
    control_plane = request.getfixturevalue(request.param)
    assert isinstance(control_plane, ControlPlane)
    return control_plane


@pytest.fixture
def kubectl(
    control_plane: ControlPlane, home_directory: Path, request: pytest.FixtureRequest
) -> Iterator[Kubectl]:
    """Kubectl in a new namespace, which is deleted after the test.

    Both without kubectl, since each costs a tenth of a second of processor time.
    """
    test = str(request.node.name)
    # Long names of tests differ behind the cut only.
    name = f"{_NEITHER.sub('-', test)[:_TEST_CHARS_MAX].strip('-')}-{zlib.crc32(test.encode()):08x}"
    kubectl = control_plane.kubectl(home_directory, name)
    with streams.client(control_plane.writing) as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": name}}).raise_for_status()
    yield kubectl
    with streams.client(control_plane.writing) as client:
        # Workloads would take capacity from the next test during the grace period of their namespace.
        for path in (*_WORKLOADS, f"/api/v1/namespaces/{name}"):
            client.request("DELETE", path.format(name), json=_AS_KUBECTL).raise_for_status()
