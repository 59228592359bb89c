"""Own brokers for these tests: the tests disconnect them, and need shorter session timeouts than the default."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.processes import LocalBrokers
from tests.scaleout.installation import Installation, installed


@pytest.fixture(scope="package")
def broker() -> Iterator[LocalBrokers]:
    """One broker for all tests that do not stop it."""
    with LocalBrokers(1) as brokers:
        yield brokers


@pytest.fixture(scope="module")
def running(broker: LocalBrokers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Two workers and one replica under load; after the tests a second replica starts, and the log is proved."""
    with installed(broker.servers, tmp_path_factory.mktemp("running")) as installation:
        yield installation
        installation.prove()


@pytest.fixture
def replicated(broker: LocalBrokers, tmp_path: Path) -> Iterator[Installation]:
    """Two workers and two replicas under load."""
    with installed(broker.servers, tmp_path, is_late=False) as installation:
        yield installation
