"""A server that is stopped or killed, and restarted on the same ports."""

# The library's annotations say too little.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from kubernetes.client import ApiClient

from tests.brokers.processes import free_ports

READY_S: Final = 90.0
STOP_S: Final = 60.0
_POLL_S: Final = 0.02


class Server:
    """``reballast up`` on a directory, with fixed ports."""

    def __init__(self, directory: Path) -> None:
        self.kubeconfig = directory / "kubeconfig"
        self._endpoint = directory / "endpoint.json"
        self._output = directory / "output"
        port = str(free_ports(1)[0])
        self._call = [sys.executable, "-m", "engine.cli", "up", "--data", str(directory), "--kube-port", port]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it is ready."""
        self._endpoint.unlink(missing_ok=True)
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(self._call, stdout=output, stderr=output)
        until_s = time.monotonic() + READY_S
        while not self._endpoint.exists():
            assert self._process.poll() is None, "the server ended by itself"
            assert time.monotonic() < until_s, "the server did not get ready"
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """Stop the server in order (SIGTERM)."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the server (SIGKILL)."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            os.kill(self._process.pid, number)
            self._process.wait(STOP_S)
            self._process = None


def disconnect(api: ApiClient) -> None:
    """Close a client's connections, which the library leaves to the garbage collector."""
    api.rest_client.pool_manager.clear()
    api.close()
