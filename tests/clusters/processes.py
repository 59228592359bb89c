"""A real cluster as local processes, with nodes simulated by kwok: pods become running, and run nothing.

Its data directory is deleted when the cluster is closed, and it ends with the process that started it.
"""

import json
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
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


class ClusterError(Exception):
    """The cluster did not start; the message has the end of its log."""


class LocalCluster:
    """A cluster with ``nodes`` nodes, each with these cores and GiB of memory, and capacity for 110 pods.

    All methods block until their effect is visible.
    """

    def __init__(self, nodes: int = 2, *, cores: int = 8, memory_gi: int = 32) -> None:
        self._nodes = [_node(f"node-{number}", cores, memory_gi) for number in range(1, nodes + 1)]
        self.directory: Final = Path(tempfile.mkdtemp(prefix="reballast-cluster-"))
        self._etcd, self._peer, self._port = free_ports(3)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._guard: subprocess.Popen[bytes] | None = None
        self._files = certificates.make(self.directory, self._url)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._files.kubeconfig

    @property
    def _url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

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
        """Start the cluster, and wait until pods run. Raises ClusterError, BuildError."""
        where = programs.directory()
        self._guard = guard(self.directory)
        self._launch(where / programs.ETCD, self._etcd_options())
        self._wait_for(programs.ETCD, lambda: _answers(f"http://127.0.0.1:{self._etcd}/health"))
        self._launch(where / programs.API_SERVER, self._api_server_options())
        self._wait_for(programs.API_SERVER, lambda: self.kubectl("get", "--raw", "/readyz") == "ok")
        kubeconfig = f"--kubeconfig={self.kubeconfig}"
        alone = ["--leader-elect=false", "--secure-port=0", kubeconfig]
        self._launch(where / programs.CONTROLLERS, [*alone, *self._controllers_options()])
        self._launch(where / programs.SCHEDULER, alone)
        self.kubectl(
            "create", "--filename", "-", given={"apiVersion": "v1", "kind": "List", "items": self._nodes}
        )
        self._launch(where / programs.KWOK, [kubeconfig, "--manage-all-nodes", "--node-ip=127.0.0.1"])
        account = ("get", "serviceaccount", "default", "--output", "name")
        self._wait_for(programs.CONTROLLERS, lambda: bool(self.kubectl(*account)))
        self._wait_for(programs.KWOK, self._has_ready_nodes)

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

    def pause(self, name: str) -> None:
        """Freeze a process: its connections stay open without responses."""
        self._processes[name].send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Continue a frozen process."""
        self._processes[name].send_signal(signal.SIGCONT)

    def _etcd_options(self) -> list[str]:
        client, peer = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{self._peer}"
        return [
            f"--data-dir={self.directory / 'data'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server_options(self) -> list[str]:
        files = self._files
        return [
            f"--etcd-servers=http://127.0.0.1:{self._etcd}",
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

    def _controllers_options(self) -> list[str]:
        return [
            f"--service-account-private-key-file={self._files.tokens_key}",
            f"--root-ca-file={self._files.authority}",
            "--use-service-account-credentials=true",
            "--horizontal-pod-autoscaler-sync-period=2s",
            "--pvclaimbinder-sync-period=2s",
        ]

    def _launch(self, program: Path, options: list[str]) -> None:
        directory = self.directory / program.name
        directory.mkdir()
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

    def _wait_for(self, name: str, is_so: Callable[[], bool]) -> None:
        limit_s = time.monotonic() + READY_S
        while not is_so():
            if self._processes[name].poll() is not None:
                raise ClusterError(f"{name} ended: {self._last_lines(name)}")
            if time.monotonic() > limit_s:
                raise ClusterError(f"{name} was not ready in time: {self._last_lines(name)}")
            time.sleep(_POLL_S)

    def _last_lines(self, name: str) -> str:
        lines = (self.directory / name / "log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LAST_LINES:])

    def kubectl(self, *words: str, given: object = None) -> str:
        """Return the output of the administrator's kubectl; empty if it fails. ``given`` is its input, as JSON."""
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), *words]
        content = None if given is None else json.dumps(given).encode()
        ended = subprocess.run(command, input=content, capture_output=True, check=False, timeout=READY_S)
        return ended.stdout.decode() if ended.returncode == 0 else ""

    def _has_ready_nodes(self) -> bool:
        path = "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
        return self.kubectl("get", "nodes", "--output", path).split() == ["True"] * len(self._nodes)


def _answers(url: str) -> bool:
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
