"""Secured brokers: authentication by SCRAM passwords, or by client certificates (mTLS).

In each case another system writes with its own identity and rights, and a worker with its own decides.
"""

import asyncio
import time
import urllib.parse
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from engine.log.kafka.address import PASSWORD_VARIABLE
from events import keys, shapes, topics
from events.client import connection_options, producer
from tests.brokers import certificates, rights
from tests.brokers.processes import LocalBrokers
from tests.builders.inputs import deployment, joined, policy
from tests.builders.manifests import on
from tests.events import wire_tables
from tests.scaleout import history
from tests.scaleout.processes import Worker

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

ENGINE: Final = "reballast"
SHOP: Final = "shop"
PASSWORD: Final = uuid.uuid4().hex
SHARD: Final = keys.shard_of(keys.binding_key("Deployment", "default", "web"))
_DECIDED_S: Final = 120.0
_REFUSED: Final = "check the address, TLS, the user and its rights"


@contextmanager
def working(
    brokers: LocalBrokers, directory: Path, security: connection_options.Security
) -> Generator[Worker]:
    """A worker that connects to the listener for users."""
    worker = Worker("worker", address(brokers, security), directory)
    if security.password:
        worker.environment[PASSWORD_VARIABLE] = security.password
    worker.launch()
    try:
        worker.wait_until(worker.has_shards)
        yield worker
    finally:
        worker.kill()


def address(brokers: LocalBrokers, security: connection_options.Security) -> str:
    """Return the log address as the command line takes it; the password is passed separately."""
    parameters = {
        "tls": str(security.tls).lower(),
        "ca_file": security.ca_file,
        "cert_file": security.cert_file,
        "key_file": security.key_file,
        "mechanism": security.mechanism,
        "username": security.username,
    }
    options = urllib.parse.urlencode({name: value for name, value in parameters.items() if value})
    return f"kafka://{brokers.secured_servers}/?{options}"


async def append_events(
    brokers: LocalBrokers, security: connection_options.Security, *events: shapes.Event
) -> None:
    async with producer.Producer(brokers.secured_servers, source="/shop", security=security) as sender:
        await sender.append_all(events)


async def until_decided(brokers: LocalBrokers) -> dict[str, int]:
    """Return the decided placement of the Deployment, once its shard has decided."""
    until_s = time.monotonic() + _DECIDED_S
    while True:
        log_history = await asyncio.to_thread(history.read, brokers.servers, topics.PREFIX.removesuffix("."))
        for entry in log_history.entries["decisions", SHARD]:
            if entry.kind == "schedule-decided":
                return {cluster["name"]: cluster["replicas"] for cluster in entry.data["clusters"]}
        assert time.monotonic() < until_s
        await asyncio.sleep(0.1)


async def proved(
    brokers: LocalBrokers,
    tmp_path: Path,
    shop: connection_options.Security,
    engine: connection_options.Security,
) -> None:
    """Assert that a worker decides another system's inputs, each with its own rights."""
    await asyncio.to_thread(rights.grant, brokers, wire_tables.rights())
    running = working(brokers, tmp_path, engine)
    await asyncio.to_thread(running.__enter__)
    try:
        await append_events(brokers, engine, joined("member1"))
        await append_events(brokers, shop, policy("p", on("member1")), deployment("web", 2))
        assert await until_decided(brokers) == {"member1": 2}
        with pytest.raises(producer.TopicError, match=r"reballast\.clusters: TopicAuthorizationFailed"):
            await append_events(brokers, shop, joined("member2"))
    finally:
        await asyncio.to_thread(running.__exit__, None, None, None)


async def test_scram_passwords_over_tls_are_accepted(tmp_path: Path) -> None:
    properties, authority = certificates.make(tmp_path)
    shop = connection_options.Security(
        tls=True, ca_file=authority, mechanism="SCRAM-SHA-256", username=SHOP, password=PASSWORD
    )
    engine = connection_options.Security(
        tls=True, ca_file=authority, mechanism="SCRAM-SHA-512", username=ENGINE, password=PASSWORD
    )
    users, mechanisms = {SHOP: PASSWORD, ENGINE: PASSWORD}, ("SCRAM-SHA-256", "SCRAM-SHA-512")
    with LocalBrokers(users=users, mechanisms=mechanisms, properties=properties) as brokers:
        await proved(brokers, tmp_path, shop, engine)

        wrong = connection_options.Security(
            tls=True, ca_file=authority, mechanism="SCRAM-SHA-512", username=SHOP, password=PASSWORD[1:]
        )
        with pytest.raises(producer.ProducerError, match=_REFUSED):
            await append_events(brokers, wrong, deployment("web", 3))


async def test_client_certificates_are_accepted(tmp_path: Path) -> None:
    properties, authority = certificates.make(tmp_path)
    more, (of_shop, of_engine) = certificates.clients(tmp_path / "clients", (SHOP, ENGINE))
    _, (of_nobody,) = certificates.clients(tmp_path / "others", (SHOP,))
    shop, engine, nobody = (
        connection_options.Security(
            tls=True, ca_file=authority, cert_file=credentials.certificate, key_file=credentials.key
        )
        for credentials in (of_shop, of_engine, of_nobody)
    )
    # The listener for users opens only with users; here it requests no password.
    with LocalBrokers(users={SHOP: PASSWORD}, properties=properties | more) as brokers:
        await proved(brokers, tmp_path, shop, engine)

        for wrong in (nobody, connection_options.Security(tls=True, ca_file=authority)):
            with pytest.raises(producer.ProducerError, match=_REFUSED):
                await append_events(brokers, wrong, deployment("web", 3))
