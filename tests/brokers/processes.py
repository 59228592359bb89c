"""Brokers as local Java processes that tests can stop, kill, freeze and restart.

Their data directory is deleted when the cluster is closed, and they end with the process that started them.
"""

import base64
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from tests.brokers import archives, configuration, jars, java, probing

READY_S: Final = 180.0
STOP_S: Final = 120.0
_POLL_S: Final = 0.02
# Small and quick to start, at the price of half the throughput.
_QUICK: Final = ("-Xmx320m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_FAST: Final = ("-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
_TOOL: Final = ("-Xmx96m", *_QUICK[1:])
_LAST_LINES: Final = 15

_PORTS: Final = range(20_000, 32_000)
"""Ports of brokers, below the kernel's ephemeral ports.

A killed broker must find its port free again, and a client that retries meanwhile must not connect to itself.
"""

# The shell's stdin is a pipe held by the test process only; it closes when that process ends for any reason.
_GUARD: Final = 'read -r _; for f in "$0"/*/pid; do [ -e "$f" ] && kill -9 "$(cat "$f")"; done; rm -rf "$0"'


class BrokerError(Exception):
    """A broker did not start, or ended unexpectedly; the message has the end of its log."""


class LocalBrokers:
    """A cluster of ``count`` brokers, numbered from 1; each is a controller too.

    ``fast`` brokers start slower and take more memory; benchmarks use them. ``users`` (names to passwords)
    adds a SASL listener with these ``mechanisms`` and access control lists. ``properties`` are added to every
    broker's. Methods block until their effect is visible; call them in a thread from a coroutine.
    """

    def __init__(
        self,
        count: int = 1,
        *,
        fast: bool = False,
        users: Mapping[str, str] | None = None,
        mechanisms: Sequence[str] = ("PLAIN",),
        properties: Mapping[str, str] | None = None,
        java_options: Sequence[str] = (),
    ) -> None:
        self._users = users or {}
        self._mechanisms = mechanisms
        self._properties = properties or {}
        self._java_options = (
            (*_QUICK, *java_options) if java_options else _FAST if fast else (*_QUICK, *archives.reading())
        )
        self._directory = Path(tempfile.mkdtemp(prefix="reballast-brokers-"))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._guard: subprocess.Popen[bytes] | None = None
        ports = free_ports(3 * count)
        self.nodes: Final = [
            configuration.Node(
                number=number,
                directory=self._directory / f"node{number}",
                port=ports.pop(),
                controller_port=ports.pop(),
                secured_port=ports.pop() if self._users else 0,
            )
            for number in range(1, count + 1)
        ]

    @property
    def servers(self) -> str:
        """Bootstrap servers of the plain listener."""
        return ",".join(node.server for node in self.nodes)

    @property
    def secured_servers(self) -> str:
        """Bootstrap servers of the listener for ``users``."""
        return ",".join(f"127.0.0.1:{node.secured_port}" for node in self.nodes)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the cluster for the first time. Raises BrokerError."""
        self._guard = guard(self._directory)
        self._format()
        for node in self.nodes:
            self._launch(node)
        self._wait_until_ready({node.number for node in self.nodes})

    def close(self) -> None:
        """Kill all brokers and delete their data."""
        for node in self.nodes:
            self.kill(node.number)
        shutil.rmtree(self._directory, ignore_errors=True)
        if self._guard is not None:
            self._guard.communicate()
            self._guard = None

    def up(self, number: int) -> None:
        """Start a stopped or killed broker on its data. Raises BrokerError."""
        if not self.is_up(number):
            self._launch(self.nodes[number - 1])
        self._wait_until_ready({number})

    def heal(self) -> None:
        """Wait until all replicas of all partitions are in sync, as seen by each running broker.

        With fewer than two in sync, writes fail; tests that take down brokers in turn must heal in between.
        """
        for node in self.nodes:
            if self.is_up(node.number):
                self._wait_for(node.number, lambda seen: not seen.lagging)

    def stop(self, number: int) -> None:
        """Stop a broker with SIGTERM; it hands over its leaderships first."""
        self._end(number, signal.SIGTERM)

    def kill(self, number: int) -> None:
        """Kill a broker with SIGKILL."""
        self._end(number, signal.SIGKILL)

    def pause(self, number: int) -> None:
        """Freeze a broker (SIGSTOP): its connections stay open without responses."""
        process = self._processes[number]
        process.send_signal(signal.SIGSTOP)
        # A thread that runs stops a moment later, and may answer a request until then.
        threads = Path(f"/proc/{process.pid}/task")
        while threads.exists() and not all(map(_is_stopped, threads.iterdir())):
            time.sleep(_POLL_S)

    def resume(self, number: int) -> None:
        """Continue a frozen broker (SIGCONT)."""
        self._processes[number].send_signal(signal.SIGCONT)

    def is_up(self, number: int) -> bool:
        """Whether the broker's process exists, frozen or not."""
        process = self._processes.get(number)
        return process is not None and process.poll() is None

    def run_tool(self, name: str, *arguments: str) -> str:
        """Run one of Kafka's command-line classes and return its output. Raises BrokerError if it fails."""
        command = [*self._java(*_TOOL, *archives.reading()), name, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise BrokerError(f"{name}: {ended.stdout}{ended.stderr}")
        return ended.stdout

    def _format(self) -> None:
        """Write each node's properties, and format its data directory for a new cluster."""
        for node in self.nodes:
            node.directory.mkdir()
            settings = configuration.properties(
                node, self.nodes, self._users, self._mechanisms, self._properties
            )
            node.properties.write_text(configuration.text(settings))
        secrets = [
            word
            for name, password in self._users.items()
            for mechanism in self._mechanisms
            if mechanism.startswith(configuration.SCRAM)
            for word in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]
        # The tool takes a second per run. What it writes differs in three lines between directories, and
        # depends on no property but users with SCRAM passwords, so it runs once per test process without these.
        files = {} if secrets else _formatted
        if not files:
            first = self.nodes[0]
            tool = ("kafka.tools.StorageTool", "format", "-t", _new_id(), "-c", str(first.properties))
            self.run_tool(*tool, *secrets)
            files |= {path.name: path.read_bytes() for path in first.data.iterdir()}
        cluster = _new_id()
        for node in self.nodes:
            node.data.mkdir(exist_ok=True)
            for name, content in files.items():
                (node.data / name).write_bytes(content)
            _identify(node, cluster)

    def _launch(self, node: configuration.Node) -> None:
        command = [*self._java(*self._java_options), "kafka.Kafka", str(node.properties)]
        with (node.directory / "log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=node.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes[node.number] = process
        (node.directory / "pid").write_text(str(process.pid))

    def _end(self, number: int, how: signal.Signals) -> None:
        if not self.is_up(number):
            return
        process = self._processes[number]
        process.send_signal(how)
        process.wait(STOP_S)
        (self.nodes[number - 1].directory / "pid").unlink()

    def _wait_until_ready(self, numbers: set[int]) -> None:
        """Wait until each of these brokers answers and knows all the others."""
        for number in sorted(numbers):
            self._wait_for(number, lambda seen: numbers <= seen.alive)

    def _wait_for(self, number: int, is_right: Callable[[probing.BrokersState], bool]) -> None:
        """Poll a broker's metadata until it satisfies a condition. Raises BrokerError."""
        node, limit_s = self.nodes[number - 1], time.monotonic() + READY_S
        while True:
            try:
                if is_right(probing.ask(node.port)):
                    return
            except probing.NoAnswerError:
                pass
            if not self.is_up(number):
                raise BrokerError(f"broker {number} ended: {self._last_lines(node)}")
            if time.monotonic() > limit_s:
                raise BrokerError(f"broker {number} was not ready in time: {self._last_lines(node)}")
            time.sleep(_POLL_S)

    def _last_lines(self, node: configuration.Node) -> str:
        return "\n".join((node.directory / "log").read_text(errors="replace").splitlines()[-_LAST_LINES:])

    def _java(self, *options: str) -> list[str]:
        logging = self._directory / "log4j2.properties"
        if not logging.exists():
            logging.write_text(configuration.LOGGING)
        return [
            str(java.java()),
            *options,
            "-XX:MaxDirectMemorySize=256m",
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={logging}",
            "-Dlog4j2.disableJmx=true",
            "-cp",
            jars.class_path(jars.KAFKA),
        ]


_formatted: Final[dict[str, bytes]] = {}
"""Files that the storage tool wrote for a cluster without SCRAM users, by name."""


def _is_stopped(thread: Path) -> bool:
    """Whether a thread of a Linux process is stopped by a signal."""
    _, _, state = (thread / "stat").read_text().rpartition(") ")
    return state.startswith("T")


def _identify(node: configuration.Node, cluster: str) -> None:
    """Write the ids of a node into its formatted data directory."""
    path = node.data / "meta.properties"
    text = path.read_text()
    ids = {"cluster.id": cluster, "node.id": str(node.number), "directory.id": _new_id()}
    for name, value in ids.items():
        text = re.sub(rf"^{re.escape(name)}=.*$", f"{name}={value}", text, flags=re.MULTILINE)
    path.write_text(text)


def _new_id() -> str:
    """Return a random id in Kafka's format; the first bit is 0 so that it never begins with a dash, like an option."""
    first, *others = uuid.uuid4().bytes
    return base64.urlsafe_b64encode(bytes([first & 0x7F, *others])).decode().rstrip("=")


def guard(directory: Path) -> subprocess.Popen[bytes]:
    """Start a guard: when this process ends, it kills those of ``directory/*/pid`` and deletes the directory."""
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, directory], stdin=subprocess.PIPE, start_new_session=True
    )


def free_ports(count: int) -> list[int]:
    ports: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            break
    return ports
