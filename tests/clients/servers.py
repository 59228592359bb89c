"""A server that stops, or is killed, and comes again where its clients look for it."""

# The library's annotations say too little.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from kubernetes.client import ApiClient

READY_S: Final = 90.0
STOP_S: Final = 60.0
_POLL_S: Final = 0.02


class Server:
    """``reballast up`` on a directory and ports that stay."""

    def __init__(self, directory: Path) -> None:
        self.kubeconfig = directory / "kubeconfig"
        self._endpoint = directory / "endpoint.json"
        self._output = directory / "output"
        port = str(_free_port())
        self._call = [sys.executable, "-m", "engine.cli", "up", "--data", str(directory), "--kube-port", port]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and returns when it is ready."""
        self._endpoint.unlink(missing_ok=True)
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(self._call, stdout=output, stderr=output)
        until_s = time.monotonic() + READY_S
        while not self._endpoint.exists():
            assert self._process.poll() is None, "the server ended by itself"
            assert time.monotonic() < until_s, "the server did not get ready"
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """Stops it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kills it as ``kill -9`` does."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            os.kill(self._process.pid, number)
            self._process.wait(STOP_S)
            self._process = None


def disconnect(api: ApiClient) -> None:
    """Closes a client's connections, which it leaves to the garbage collector."""
    api.rest_client.pool_manager.clear()
    api.close()


def _free_port() -> int:
    """Below those that the kernel gives to outgoing connections, so that it is free again after a restart."""
    for port in range(18_000 + os.getpid() % 1_000, 20_000):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
