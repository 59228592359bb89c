"""Properties of local brokers: small, with short failure detection and cleanup intervals. Not for production."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

SCRAM: Final = "SCRAM-"
_MODULES: Final = "org.apache.kafka.common.security"
_REPLICAS_MAX: Final = 3

_QUICK: Final[dict[str, str]] = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    # As in production: topics are created explicitly, with the right number of partitions.
    "auto.create.topics.enable": "false",
    # A killed broker is detected after 3 s instead of 9.
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    # A new group does not wait 3 s for more members, and a dead member may be detected within 1 s.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # Transactions over their timeout are aborted within a second.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # The default of 50 partitions each takes long to load on a small machine.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    # Retention and compaction take effect within a test.
    "log.cleaner.backoff.ms": "500",
    "log.cleaner.dedupe.buffer.size": "8388608",
    "log.initial.task.delay.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    # A killed broker recovers all its partitions at the start, and has hundreds of them.
    "num.recovery.threads.per.data.dir": "4",
    "log.index.size.max.bytes": "65536",
    # Controllers on one machine reach each other at once, or not at all.
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "replica.fetch.backoff.ms": "200",
    # Two cores have no use for the default of dozens of threads.
    "background.threads": "2",
    "num.io.threads": "4",
    "num.network.threads": "2",
}

RESTARTED: Final = {"broker.session.timeout.ms": "3000"}
"""Properties of a single broker that a test kills: it can only come back when its session has ended."""

_ALONE: Final = {"broker.session.timeout.ms": "60000"}
"""Nobody takes the place of a single broker, so a machine that stalls for seconds must not fence it."""

LOGGING: Final = """\
status=error
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d{ISO8601} %p %c{1}: %m%n
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
"""


class Node(Struct, frozen=True, kw_only=True):
    """One broker: its number (from 1), directory, and loopback ports.

    ``secured_port`` is the port of a listener with password authentication, 0 for none.
    """

    number: int
    directory: Path
    port: int
    controller_port: int
    secured_port: int = 0

    @property
    def properties(self) -> Path:
        return self.directory / "server.properties"

    @property
    def data(self) -> Path:
        """The directory of its log."""
        return self.directory / "data"

    @property
    def server(self) -> str:
        """The bootstrap address for clients."""
        return f"127.0.0.1:{self.port}"


def properties(
    node: Node,
    nodes: Sequence[Node],
    users: Mapping[str, str],
    mechanisms: Sequence[str],
    extra: Mapping[str, str],
) -> dict[str, str]:
    """Return all properties of a node; ``extra`` overrides the others."""
    replicas = min(_REPLICAS_MAX, len(nodes))
    in_sync = max(1, replicas - 1)
    settings = _QUICK | {
        "node.id": str(node.number),
        "log.dirs": str(node.data),
        "controller.quorum.voters": ",".join(f"{n.number}@127.0.0.1:{n.controller_port}" for n in nodes),
        "listeners": f"PLAINTEXT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{node.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(replicas),
    }
    for topic in ("transaction.state.log", "share.coordinator.state.topic"):
        settings[f"{topic}.replication.factor"] = str(replicas)
        settings[f"{topic}.min.isr"] = str(in_sync)
    if len(nodes) == 1:
        settings |= _ALONE
    if users:
        settings |= _secured(node, users, mechanisms, settings)
    return {**settings, **extra}


def text(properties: Mapping[str, str]) -> str:
    """Return properties in the format of a properties file."""
    return "".join(f"{name}={value}\n" for name, value in properties.items())


def _secured(
    node: Node, users: Mapping[str, str], mechanisms: Sequence[str], plain: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of a second listener with SASL users, whose rights are access control lists.

    Clients of the plain listener are super users. SCRAM credentials are stored in the cluster's metadata.
    """
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    entries = {
        f"listener.name.secured.{mechanism.lower()}.sasl.jaas.config": (
            f"{_MODULES}.scram.ScramLoginModule required;"
            if mechanism.startswith(SCRAM)
            else f"{_MODULES}.plain.PlainLoginModule required {known};"
        )
        for mechanism in mechanisms
    }
    address = f"SECURED://127.0.0.1:{node.secured_port}"
    return {
        "listeners": f"{plain['listeners']},{address}",
        "advertised.listeners": f"{plain['advertised.listeners']},{address}",
        "listener.security.protocol.map": f"{plain['listener.security.protocol.map']},SECURED:SASL_PLAINTEXT",
        "listener.name.secured.sasl.enabled.mechanisms": ",".join(mechanisms),
        **entries,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
