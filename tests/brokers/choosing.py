"""Which broker the tests use: one that the environment names, else one in Docker, else a local process.

There is no way without a broker: a test that was skipped would say nothing.
"""

import contextlib
import os
from collections.abc import Generator
from enum import StrEnum
from typing import Final

from tests.brokers import containers, preparing, processes

SERVERS: Final = "REBALLAST_TEST_KAFKA"
"""Bootstrap servers of a broker that is there already."""

FROM: Final = "REBALLAST_TEST_KAFKA_FROM"
"""``env``, ``docker`` or ``local``: that way and no other, so that one knows what was tested."""


class Way(StrEnum):
    """Where a broker comes from."""

    ENV = "env"
    DOCKER = "docker"
    LOCAL = "local"


def way() -> Way:
    """The way that the environment forces, or the first that is open; raises ValueError for a word unknown."""
    forced = os.environ.get(FROM)
    if forced:
        return Way(forced)
    if os.environ.get(SERVERS):
        return Way.ENV
    return Way.DOCKER if containers.docker_answers() else Way.LOCAL


@contextlib.contextmanager
def broker(by: Way) -> Generator[str]:
    """The bootstrap servers of a broker, as long as the context lasts."""
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
