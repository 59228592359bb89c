"""Valid objects of hostile sizes: none of them blocks the event loop, and the server still stops on request."""

import contextlib
import json
import re
import threading
import time
from pathlib import Path
from typing import Final, Self

import httpx
import pytest

from tests import speed
from tests.builders.manifests import deployment, policy
from tests.cli.hostile_inputs import (
    DEPLOYMENTS,
    POLICIES,
    Input,
    inputs,
    labelled,
    posted,
)
from tests.cli.servers import running

pytestmark = pytest.mark.slow

TEMPLATES: Final = 60
HELD_S_MAX: Final = 0.1
"""Processor time of the loop's thread, on a machine of the speed in ``tests.speed``.

Unlike a delay, it does not grow when other processes take the cores.
"""

ATTEMPTS: Final = 3
"""Servers that are tried until one has no finding.

A virtual machine counts the time that it was given no core as its own; an input that holds the loop does so each time.
"""

_HELD: Final = re.compile(r"^reballast_event_loop_held_max_seconds ([0-9.e+-]+)$", re.MULTILINE)


class Server:
    """A running server and an administrator's client."""

    def __init__(self, directory: Path) -> None:
        endpoint = json.loads((directory / "endpoint.json").read_text())
        headers = {"Authorization": f"Bearer {endpoint['token']}"}
        kube_url = endpoint.get("kubeUrl") or endpoint["kube_url"]
        self._kube = httpx.Client(base_url=kube_url, verify=False, headers=headers, timeout=60)  # noqa: S501
        self._queries = httpx.Client(base_url=endpoint["url"], headers=headers, timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kube.close()
        self._queries.close()

    def ask(self, request: Input) -> httpx.Response:
        """Send a request, and wait for the response."""
        client = self._queries if request.is_query else self._kube
        headers = {"content-type": request.media, "accept": request.accept}
        return client.request(request.method, request.path, content=request.content, headers=headers)

    def held_s(self) -> float:
        """Return the longest time that the event loop was blocked so far, in seconds."""
        time.sleep(0.1)
        matched = _HELD.search(self._queries.get("/metrics").text)
        assert matched is not None
        return float(matched[1])


def send_large_policy_if_running(server: Server) -> None:
    with contextlib.suppress(httpx.HTTPError):
        server.ask(posted(POLICIES, policy("more", None, *labelled(1_000))))


def test_no_input_blocks_the_event_loop_or_the_shutdown(tmp_path: Path) -> None:
    holding: dict[str, float] = {}
    for attempt in range(ATTEMPTS):
        holding = blocking_inputs(tmp_path / str(attempt))
        if not holding:
            break
    assert holding == {}


def blocking_inputs(directory: Path) -> dict[str, float]:
    """Return the inputs that blocked the loop of a new server for too long, and for how long in seconds."""
    with running(directory) as process, Server(directory) as server:
        held_s = server.held_s()
        holding = {"start": held_s} if held_s > HELD_S_MAX * speed.slowness() else {}
        for index in range(TEMPLATES):
            grouped = deployment(f"web{index}", metadata={"labels": {"group": f"g{index}"}})
            assert server.ask(posted(DEPLOYMENTS, grouped)).is_success

        refused: list[str] = []
        for number, request in enumerate(inputs()):
            answer = server.ask(request)
            assert answer.status_code < 500
            if answer.status_code == 422:
                refused += [cause["field"] for cause in answer.json()["details"]["causes"]]
            before_s, held_s = held_s, server.held_s()
            if held_s > max(before_s, HELD_S_MAX) and held_s > HELD_S_MAX * speed.slowness():
                holding[f"{number}: {request.method} {request.path} {request.content[:200]!r}"] = held_s

        assert refused == ["spec.resourceSelectors", "spec.template.spec"]

        # Stop the server during one more request, which may remain unanswered.
        last = threading.Thread(target=send_large_policy_if_running, args=(server,))
        last.start()
        process.terminate()
        assert process.wait(60) == 0
        last.join()
    return holding
