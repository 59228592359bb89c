"""One server for all documents, and one with its log on Kafka; each test leaves them empty."""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.servers import running
from tests.seeds.users import User


@pytest.fixture(scope="package")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a running server with its three members."""
    directory = tmp_path_factory.mktemp("seeds")
    started_s = time.monotonic()
    with running(directory):
        print(f"ready {time.monotonic() - started_s:.2f} s after the start of the process")  # noqa: T201
        yield directory


@pytest.fixture(scope="package")
def documented_on_kafka(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a server with its log on Kafka."""
    directory = tmp_path_factory.mktemp("seeds-on-kafka")
    with running(directory, "--log", f"kafka://{kafka}/d{secrets.token_hex(4)}"):
        yield directory


@pytest.fixture(params=["documented", pytest.param("documented_on_kafka", marks=pytest.mark.kafka)])
def user(request: pytest.FixtureRequest) -> Iterator[User]:
    """A user of either server: both must show the same."""
    user = User(request.getfixturevalue(request.param))
    yield user
    user.clean_up()
