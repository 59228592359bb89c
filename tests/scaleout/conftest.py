"""Brokers of these tests' own: they are cut off, and let workers be silent for less than brokers do by default."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.processes import LocalBrokers
from tests.scaleout.installation import Installation, installed


@pytest.fixture(scope="session")
def broker() -> Iterator[LocalBrokers]:
    """One broker for all tests that leave it alone."""
    with LocalBrokers(1) as found:
        yield found


@pytest.fixture
def running(broker: LocalBrokers, tmp_path: Path) -> Iterator[Installation]:
    """Two workers and a replica under load, with another replica at the end."""
    with installed(broker.servers, tmp_path) as found:
        yield found


@pytest.fixture
def replicated(broker: LocalBrokers, tmp_path: Path) -> Iterator[Installation]:
    """Two workers and two replicas under load."""
    with installed(broker.servers, tmp_path, is_late=False) as found:
        yield found
