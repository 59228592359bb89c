"""Control planes for kubectl: a single process on SQLite, or API replicas on Kafka."""

import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from engine.log.kafka.shard_assignment import SESSION_MS, SESSION_VARIABLE
from tests.cli.servers import running
from tests.kubectl.commands import Kubectl
from tests.scaleout.processes import Api, Process, Worker


class ControlPlane(Struct, frozen=True, kw_only=True):
    """Kubeconfigs of the replica for writes and of the replica for reads; the latter has the members."""

    writing: Path
    reading: Path
    log: str = ""

    def kubectl(self, home_directory: Path, namespace: str = "default", context: str = "") -> Kubectl:
        """Return a kubectl that writes through one replica and reads through the other."""
        return Kubectl(self.writing, home_directory, namespace, context, reading=self.reading)


@contextmanager
def on_sqlite(directory: Path, *options: str) -> Generator[ControlPlane]:
    """Run ``reballast up``, with everything in one process."""
    with running(directory, *options):
        yield ControlPlane(writing=directory / "kubeconfig", reading=directory / "kubeconfig")


@contextmanager
def on_kafka(servers: str, directory: Path) -> Generator[ControlPlane]:
    """Run two workers, a replica for writes, and a replica with members for reads."""
    log = f"kafka://{servers}/k{secrets.token_hex(4)}"
    workers = [Worker(f"worker{index}", log, directory) for index in range(2)]
    apis = [replica("reading", log, directory, "--members"), replica("writing", log, directory)]
    with launched(*workers, *apis):
        for worker in workers:
            worker.wait_until(worker.has_shards)
        for api in apis:
            api.wait_until(api.answers)
        reading, writing = (api.data / "kubeconfig" for api in apis)
        yield ControlPlane(writing=writing, reading=reading, log=log)


def replica(name: str, log: str, directory: Path, *options: str) -> Api:
    """Return an API replica that is not started yet; it will share the keys of the other replicas on its log."""
    return Api(name, log, directory, *options)


@contextmanager
def launched(*processes: Process) -> Generator[None]:
    """Run processes during the block, and stop them in order."""
    try:
        for process in processes:
            # The shared broker may not allow the short sessions that the tests with killed workers use.
            process.environment[SESSION_VARIABLE] = str(SESSION_MS)
            process.launch()
        yield
    finally:
        for process in reversed(processes):
            with suppress(ProcessLookupError):
                process.stop()
