"""A control plane and one cluster for all tests of the session; each test joins the cluster under its own name."""

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec import Struct

from tests.agent.real import PREFIX, VARIABLE, Cluster, Real
from tests.agent.servers import Server, join, serving, up


class Installation(Struct, frozen=True):
    """The control plane, and a member cluster's API server."""

    control: Server
    member: Server


@pytest.fixture(scope="package")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A running control plane and a running member cluster."""
    directory = tmp_path_factory.mktemp("agents")
    with ExitStack() as stack:
        yield Installation(up(directory / "control", stack), up(directory / "member", stack))


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A real cluster with a namespace of this test, which is created at first use and deleted afterwards."""
    cluster = Cluster(Path(os.environ[VARIABLE]), f"{PREFIX}-{secrets.token_hex(3)}")
    yield cluster
    cluster("delete", "namespace", cluster.namespace, "--ignore-not-found", "--wait=false")


@pytest.fixture
def real(installation: Installation, cluster: Cluster, tmp_path: Path) -> Iterator[Real]:
    """A real cluster with an agent that has the rights of its administrator."""
    name = f"real-{secrets.token_hex(3)}"
    with serving(tmp_path, join(installation.control, name, cluster.kubeconfig, tmp_path)) as agent:
        yield Real(installation.control, cluster, name, agent)
