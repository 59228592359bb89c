"""A broker in Docker: the Apache Kafka image, started by testcontainers."""

import contextlib
import os
import socket
from collections.abc import Generator
from typing import Final

import docker
from docker.errors import DockerException
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

IMAGE: Final = "apache/kafka:4.3.1"

_ANSWER_S_MAX: Final = 3
_READY_S_MAX: Final = 90
_SOCKET: Final = "/var/run/docker.sock"
_INSIDE: Final = 9092

# Setting any property disables all defaults of the image.
_ENVIRONMENT: Final = {
    "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:29093",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
    "KAFKA_LISTENERS": f"HOST://:{_INSIDE},INTERNAL://:19092,CONTROLLER://:29093",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "HOST:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_NODE_ID": "1",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
    "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
}


def docker_answers() -> bool:
    """Whether a Docker daemon is available to this user."""
    # Checked first, because Docker's client leaks sockets if no daemon listens.
    if "DOCKER_HOST" not in os.environ and not _listens(_SOCKET):
        return False
    try:
        with contextlib.closing(docker.from_env(timeout=_ANSWER_S_MAX)) as client:
            return client.ping()  # pyright: ignore[reportUnknownMemberType]
    except DockerException:
        return False


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as link:
        return link.connect_ex(path) == 0


@contextlib.contextmanager
def broker() -> Generator[str]:
    """Run a broker in a container during the context; yield its bootstrap servers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        # Brokers advertise their address to clients, so the port must be known before the start.
        port: int = free.getsockname()[1]
    container = DockerContainer(IMAGE).with_bind_ports(_INSIDE, port)
    address = f"{container.get_container_host_ip()}:{port}"
    for name, value in _ENVIRONMENT.items():
        container.with_env(name, value)
    container.with_env("KAFKA_ADVERTISED_LISTENERS", f"HOST://{address},INTERNAL://localhost:19092")
    container.waiting_for(LogMessageWaitStrategy("Kafka Server started").with_startup_timeout(_READY_S_MAX))
    with container:
        yield address
