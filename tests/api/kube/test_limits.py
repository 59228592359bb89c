"""Limits per user in the Kubernetes API, and isolation of a slow watcher."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn

from engine.http.kube.app import create_app
from engine.http.kube.rate_limits import Limits, Meter
from engine.kubeapi.errors.status_objects import StatusError
from tests.api.servers import NOW_MS, TOKEN, serving

SECONDS = 60.0
MAPS = "/api/v1/namespaces/default/configmaps"
ALICE, BOB = "alice", "bob"
HEADERS = {"authorization": f"Bearer {TOKEN}"}
AS_ALICE = {**HEADERS, "impersonate-user": "alice"}


@asynccontextmanager
async def on_a_port(limits: Limits) -> AsyncGenerator[int]:
    """The API over plain HTTP, on a port, in the test's own loop."""
    async with serving() as services:
        app = create_app(services, lambda: NOW_MS, limits=limits)
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error"))
        # Named as TCP, so that small writes are not delayed.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        running = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield listening.getsockname()[1]
        finally:
            services.stopping.set()
            server.should_exit = server.force_exit = True
            await running
            listening.close()


def client(port: int, headers: dict[str, str] = HEADERS) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=SECONDS)


def test_rate_limit_is_per_user_and_refills() -> None:
    now_s = [100.0]
    meter = Meter(Limits(requests_per_second=2, burst=3), lambda: now_s[0])
    for _ in range(3):
        meter.count_request(ALICE)
    with pytest.raises(StatusError) as refused:
        meter.count_request(ALICE)
    assert (refused.value.code, refused.value.details) == (429, {"retryAfterSeconds": 1})
    meter.count_request(BOB)
    now_s[0] += 0.5
    meter.count_request(ALICE)
    with pytest.raises(StatusError):
        meter.count_request(ALICE)
    now_s[0] += 3600
    for _ in range(3):
        meter.count_request(ALICE)
    with pytest.raises(StatusError):
        meter.count_request(ALICE)


def test_open_watches_are_limited_per_user() -> None:
    meter = Meter(Limits(watches=2), lambda: 0.0)
    ends = [meter.watch(ALICE) for _ in range(2)]
    with pytest.raises(StatusError, match="user alice has reached the limit of 2 watches"):
        meter.watch(ALICE)
    meter.watch(BOB)()
    ends[0]()
    meter.watch(ALICE)


async def test_rate_limited_request_is_answered_429_with_retry_after() -> None:
    async with on_a_port(Limits(requests_per_second=0.1, burst=3)) as port, client(port, AS_ALICE) as alice:
        answers = [await alice.get("/apis") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert answers[-1].json()["reason"] == "TooManyRequests"
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 10


async def test_masters_are_not_rate_limited() -> None:
    async with (
        on_a_port(Limits(requests_per_second=0.001, burst=1, watches=0)) as port,
        client(port) as admin,
    ):
        answers = [await admin.get("/apis") for _ in range(100)]
        assert {answer.status_code for answer in answers} == {200}
        async with admin.stream("GET", f"{MAPS}?watch=true") as watch:
            assert watch.status_code == 200
        async with client(port, AS_ALICE) as alice:
            assert [(await alice.get("/apis")).status_code for _ in range(2)] == [200, 429]


async def _lines(port: int, count: int) -> list[str]:
    """Return the object names that a reading watcher receives."""
    names: list[str] = []
    async with client(port) as reader, reader.stream("GET", f"{MAPS}?watch=true") as answer:
        async for line in answer.aiter_lines():
            names.append(json.loads(line)["object"]["metadata"]["name"])
            if len(names) == count:
                break
    return names


@pytest.mark.slow
async def test_slow_watcher_is_cut_off_and_does_not_delay_others() -> None:
    count = 300
    async with on_a_port(Limits(queue=20)) as port:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        slow.settimeout(0.0)
        loop = asyncio.get_running_loop()
        with contextlib.closing(slow):
            await loop.sock_connect(slow, ("127.0.0.1", port))
            head = f"GET {MAPS}?watch=true&allowWatchBookmarks=true HTTP/1.1\r\nhost: localhost\r\n"
            await loop.sock_sendall(slow, f"{head}authorization: Bearer {TOKEN}\r\n\r\n".encode())
            assert (await loop.sock_recv(slow, 12)).startswith(b"HTTP/1.1 200")
            quick = asyncio.create_task(_lines(port, count))
            async with client(port) as writer:
                for number in range(count):
                    body = {"metadata": {"name": f"map-{number:03}"}, "data": {"text": "x" * 30_000}}
                    answer = await writer.post(MAPS, json={"apiVersion": "v1", "kind": "ConfigMap", **body})
                    assert answer.status_code == 201
            names = await asyncio.wait_for(quick, SECONDS)
            assert names == [f"map-{number:03}" for number in range(count)]
            # Now the slow watcher reads: some events, a bookmark to continue from, and the end.
            received = bytearray()
            async with asyncio.timeout(SECONDS):
                while not received.endswith(b"0\r\n\r\n"):
                    received += await loop.sock_recv(slow, 1 << 20)
            assert 0 < received.count(b'"type":"ADDED"') < count
            assert received.count(b'"type":"BOOKMARK"') == 1
