"""Choice of the broker for the tests: one named by the environment, else one in Docker, else a local process.

Tests are never skipped for lack of a broker: a skipped test would prove nothing.
"""

import contextlib
import os
from collections.abc import Generator
from enum import StrEnum
from typing import Final

from tests.brokers import containers, preparing, processes

SERVERS: Final = "REBALLAST_TEST_KAFKA"
"""Environment variable with the bootstrap servers of an existing broker."""

FROM: Final = "REBALLAST_TEST_KAFKA_FROM"
"""Environment variable that forces one source: ``env``, ``docker`` or ``local``."""


class Way(StrEnum):
    """The source of a broker."""

    ENV = "env"
    DOCKER = "docker"
    LOCAL = "local"


def way() -> Way:
    """Return the source forced by the environment, or the first available; raises ValueError for an unknown one."""
    forced = os.environ.get(FROM)
    if forced:
        return Way(forced)
    if os.environ.get(SERVERS):
        return Way.ENV
    return Way.DOCKER if containers.docker_answers() else Way.LOCAL


@contextlib.contextmanager
def broker(by: Way) -> Generator[str]:
    """Provide a broker during the context; yield its bootstrap servers."""
    match by:
        case Way.ENV:
            yield os.environ[SERVERS]
        case Way.DOCKER:
            with containers.broker() as servers:
                yield servers
        case Way.LOCAL:
            preparing.prepare()
            with processes.LocalBrokers() as brokers:
                yield brokers.servers
