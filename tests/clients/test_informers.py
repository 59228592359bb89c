"""Informers over restarts: in the end they hold what a list shows, without lost or repeated events.

Restarts follow each other directly, half of them by ``kill -9``, while a writer creates, changes and deletes
without pause: each restart meets writes and watches in flight.
"""

# The library's annotations say too little, or that everything may be absent.
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import random
import threading
import time
from pathlib import Path
from typing import Final

import pytest
import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from tests.clients.informers import Informer, expected_objects
from tests.clients.servers import disconnect, on_fixed_port
from tests.rounds import ROUNDS
from tests.waiting import until

RESTARTS: Final = 2 * ROUNDS
NAMESPACE: Final = "default"
_INFORMERS: Final = 3
_NAMES: Final = 12
_LEVEL_S: Final = 90.0
_BETWEEN_S: Final = 0.3


class Writer(threading.Thread):
    """Creates, changes and deletes ConfigMaps, and retries interrupted writes."""

    def __init__(self, api: "client.CoreV1Api") -> None:
        super().__init__(name="writer", daemon=True)
        self.stopping = threading.Event()
        self.written = 0
        self.refused: list[ApiException] = []
        self._api = api
        self._chance = random.Random(7)  # noqa: S311  # a seed makes it the same each time

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                self._write(f"map-{self._chance.randrange(_NAMES)}")
                self.written += 1
            except ApiException as error:
                # An earlier attempt may have succeeded before its connection broke.
                if error.status not in (404, 409, 503):
                    self.refused.append(error)
            except (urllib3.exceptions.HTTPError, OSError):
                time.sleep(0.02)

    def _write(self, name: str) -> None:
        data = {"at": str(self.written)}
        match self._chance.randrange(4):
            case 0:
                self._api.delete_namespaced_config_map(name, NAMESPACE)
            case 1:
                body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)
                self._api.create_namespaced_config_map(NAMESPACE, body)
            case _:
                self._api.patch_namespaced_config_map(name, NAMESPACE, {"data": data})


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # see conftest
def test_informers_equal_a_list_after_many_restarts(tmp_path: Path) -> None:
    server = on_fixed_port(tmp_path)
    server.start()
    apis = [connected(server.directory / "kubeconfig") for _ in range(_INFORMERS + 1)]
    api, writer = apis[0], Writer(apis[0])
    informers = [Informer(connection, NAMESPACE) for connection in apis[1:]]
    running = (*informers, writer)
    try:
        for thread in running:
            thread.start()
        for turn in range(RESTARTS):
            until(lambda before=writer.written: writer.written > before + 5)
            time.sleep(_BETWEEN_S)
            if turn % 2:
                server.stop()
            else:
                server.kill()
            server.start()
        until(lambda before=writer.written: writer.written > before + 20)
        writer.stopping.set()
        writer.join()
        shown = expected_objects(api, NAMESPACE)
        for informer in informers:
            until(lambda informer=informer: informer.held == shown)
            assert informer.wrong == []
            assert informer.relisted == 1, "it never had to look at everything again"
            assert informer.broken >= RESTARTS // 2
        assert writer.refused == []
    finally:
        for thread in running:
            thread.stopping.set()
        for thread in running:
            # A thread that outlives its test would keep polling, and end with the process.
            thread.join(_LEVEL_S)
        server.stop()
        for connection in apis:
            disconnect(connection.api_client)
    assert not any(thread.is_alive() for thread in running)


def connected(kubeconfig: Path) -> "client.CoreV1Api":
    """Return a client of the server that the kubeconfig names."""
    return client.CoreV1Api(config.new_client_from_config(config_file=str(kubeconfig)))
