"""Where kubectl finds a control plane: one process on its own file, or replicas on Kafka."""

import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from engine.log.kafka.assigning import SESSION_MS, SESSION_VARIABLE
from tests.cli.servers import running
from tests.kubectl.commands import Kubectl
from tests.scaleout.processes import Api, Process, Worker


class Place(Struct, frozen=True, kw_only=True):
    """Kubeconfigs of those who take writes, and of those who are asked; the latter have the members."""

    writing: Path
    reading: Path
    log: str = ""

    def kubectl(self, home: Path, namespace: str = "default", context: str = "") -> Kubectl:
        """Kubectl that writes through the one and reads from the other."""
        return Kubectl(self.writing, home, namespace, context, reading=self.reading)


@contextmanager
def on_sqlite(directory: Path, *options: str) -> Generator[Place]:
    """``reballast up``, which is all in one."""
    with running(directory, *options):
        yield Place(writing=directory / "kubeconfig", reading=directory / "kubeconfig")


@contextmanager
def on_kafka(servers: str, directory: Path) -> Generator[Place]:
    """Two workers, a replica that is written through, and one with members that is read from."""
    log = f"kafka://{servers}/k{secrets.token_hex(4)}"
    workers = [Worker(f"worker{index}", log, directory) for index in range(2)]
    apis = [replica("reading", log, directory, "--members"), replica("writing", log, directory)]
    with launched(*workers, *apis):
        for worker in workers:
            worker.wait_until(worker.has_shards)
        for api in apis:
            api.wait_until(api.answers)
        reading, writing = (api.data / "kubeconfig" for api in apis)
        yield Place(writing=writing, reading=reading, log=log)


def replica(name: str, log: str, directory: Path, *options: str) -> Api:
    """An API replica that is not launched yet; it comes to have the same keys as the others on its log."""
    return Api(name, log, directory, *options)


@contextmanager
def launched(*processes: Process) -> Generator[None]:
    """Runs processes beside the block, and stops them in order."""
    try:
        for each in processes:
            # Brokers for all tests need not allow the short sessions of tests that kill workers.
            each.environment[SESSION_VARIABLE] = str(SESSION_MS)
            each.launch()
        yield
    finally:
        for each in reversed(processes):
            with suppress(ProcessLookupError):
                each.stop()
