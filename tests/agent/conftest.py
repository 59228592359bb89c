"""A control plane and one cluster for all tests of the session; each test joins the cluster by a name of its own."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from msgspec import Struct

from tests.agent.house import Server, up


class House(Struct, frozen=True):
    """The control plane, and the cluster's own API."""

    control: Server
    member: Server


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Both are up."""
    directory = tmp_path_factory.mktemp("agents")
    with ExitStack() as stack:
        yield House(up(directory / "control", stack), up(directory / "member", stack))
