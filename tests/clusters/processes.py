"""A real cluster as local processes, with nodes simulated by kwok: pods become running, and run nothing.

Its data directory is deleted when the cluster is closed, and it ends with the process that started it.
"""

import json
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self

import httpx

from tests.brokers.processes import free_ports, guard
from tests.builders.manifests import manifest
from tests.clusters import certificates, programs

READY_S: Final = 120.0
STOP_S: Final = 30.0
_POLL_S: Final = 0.1
_LAST_LINES: Final = 15
_PODS: Final = 110
_SERVICES: Final = "10.96.0.0/16"
_FREQUENT: Final = ("--horizontal-pod-autoscaler-sync-period=2s", "--pvclaimbinder-sync-period=2s")


class ClusterError(Exception):
    """The cluster did not start; the message has the end of its log."""


class Cluster:
    """An API server with its own etcd, as local processes, and what is started beside them.

    All methods block until their effect is visible.
    """

    def __init__(self) -> None:
        self.directory: Final = Path(tempfile.mkdtemp(prefix="reballast-cluster-"))
        self._etcd, self._peer, self._port = free_ports(3)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._guard: subprocess.Popen[bytes] | None = None
        self.files: Final = certificates.make(self.directory, f"https://127.0.0.1:{self._port}")

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.files.kubeconfig

    @property
    def etcd_url(self) -> str:
        """Address of the etcd, which takes requests without a certificate."""
        return f"http://127.0.0.1:{self._etcd}"

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
        """Start etcd and the API server. Raises ClusterError, BuildError."""
        where = programs.directory()
        self._guard = guard(self.directory)
        self.launch(where / programs.ETCD, self._etcd_options())
        self.wait_for(programs.ETCD, lambda: answers(f"{self.etcd_url}/health"))
        self.launch(where / programs.API_SERVER, self.api_server_options())
        self.wait_for(programs.API_SERVER, lambda: self.kubectl("get", "--raw", "/readyz") == "ok")

    def close(self) -> None:
        """Kill all processes and delete their data."""
        for name, process in self._processes.items():
            if process.poll() is None:
                process.kill()
                process.wait(STOP_S)
            (self.directory / name / "pid").unlink(missing_ok=True)
        shutil.rmtree(self.directory, ignore_errors=True)
        if self._guard is not None:
            self._guard.communicate()
            self._guard = None

    def launch(self, program: Path, options: Sequence[str]) -> None:
        """Start a program in a directory of its name, where its output is in ``log`` and its number in ``pid``."""
        directory = self.directory / program.name
        directory.mkdir(exist_ok=True)
        with (directory / "log").open("ab") as log:
            process = subprocess.Popen(
                [str(program), *options],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes[program.name] = process
        (directory / "pid").write_text(str(process.pid))

    def wait_for(self, name: str, is_so: Callable[[], bool]) -> None:
        """Wait until ``is_so`` returns true; raises ClusterError if the program called ``name`` ends before."""
        limit_s = time.monotonic() + READY_S
        while not is_so():
            if self._processes[name].poll() is not None:
                raise ClusterError(f"{name} ended: {self._last_lines(name)}")
            if time.monotonic() > limit_s:
                raise ClusterError(f"{name} was not ready in time: {self._last_lines(name)}")
            time.sleep(_POLL_S)

    def pause(self, name: str) -> None:
        """Freeze a process: its connections stay open without responses."""
        self._processes[name].send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Continue a frozen process."""
        self._processes[name].send_signal(signal.SIGCONT)

    def kubectl(self, *words: str, document: object = None) -> str:
        """Return the output of the administrator's kubectl; empty if it fails. ``document`` is its input, as JSON."""
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), *words]
        content = None if document is None else json.dumps(document).encode()
        ended = subprocess.run(command, input=content, capture_output=True, check=False, timeout=READY_S)
        return ended.stdout.decode() if ended.returncode == 0 else ""

    def api_server_options(self) -> list[str]:
        """Options of the API server."""
        files = self.files
        return [
            f"--etcd-servers={self.etcd_url}",
            f"--secure-port={self._port}",
            "--bind-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={files.certificate}",
            f"--tls-private-key-file={files.key}",
            f"--client-ca-file={files.authority}",
            f"--service-account-key-file={files.tokens_public}",
            f"--service-account-signing-key-file={files.tokens_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={_SERVICES}",
            "--authorization-mode=RBAC",
        ]

    def controllers_options(self) -> list[str]:
        """Options of the controller manager."""
        return [
            *self.alone(),
            f"--service-account-private-key-file={self.files.tokens_key}",
            f"--root-ca-file={self.files.authority}",
            "--use-service-account-credentials=true",
        ]

    def alone(self) -> list[str]:
        """Options of a program of Kubernetes that runs once and serves nothing."""
        return ["--leader-elect=false", "--secure-port=0", f"--kubeconfig={self.kubeconfig}"]

    def _etcd_options(self) -> list[str]:
        peer = f"http://127.0.0.1:{self._peer}"
        return [
            f"--data-dir={self.directory / 'data'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _last_lines(self, name: str) -> str:
        lines = (self.directory / name / "log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LAST_LINES:])


class LocalCluster(Cluster):
    """A cluster with ``nodes`` nodes, each with these cores and GiB of memory, and capacity for 110 pods."""

    def __init__(self, nodes: int = 2, *, cores: int = 8, memory_gi: int = 32) -> None:
        super().__init__()
        self._nodes = [_node(f"node-{number}", cores, memory_gi) for number in range(1, nodes + 1)]

    def start(self) -> None:
        """Start the cluster, and wait until pods run. Raises ClusterError, BuildError."""
        super().start()
        where = programs.directory()
        self.launch(where / programs.CONTROLLERS, [*self.controllers_options(), *_FREQUENT])
        self.launch(where / programs.SCHEDULER, self.alone())
        self.kubectl(
            "create", "--filename", "-", document={"apiVersion": "v1", "kind": "List", "items": self._nodes}
        )
        self.launch(
            where / programs.KWOK,
            [f"--kubeconfig={self.kubeconfig}", "--manage-all-nodes", "--node-ip=127.0.0.1"],
        )
        account = ("get", "serviceaccount", "default", "--output", "name")
        self.wait_for(programs.CONTROLLERS, lambda: bool(self.kubectl(*account)))
        self.wait_for(programs.KWOK, self._has_ready_nodes)

    def _has_ready_nodes(self) -> bool:
        path = "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
        return self.kubectl("get", "nodes", "--output", path).split() == ["True"] * len(self._nodes)


def answers(url: str) -> bool:
    """Whether a server answers a GET with success."""
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.TransportError:
        return False


def _node(name: str, cores: int, memory_gi: int) -> dict[str, object]:
    room = {"cpu": str(cores), "memory": f"{memory_gi}Gi", "pods": str(_PODS)}
    return manifest(
        "v1",
        "Node",
        name,
        metadata={"labels": {"kubernetes.io/hostname": name}},
        status={"allocatable": room, "capacity": room},
    )
