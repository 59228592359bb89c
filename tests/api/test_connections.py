"""Clients that hold connections: incomplete heads and bodies, missing TLS handshakes, and too many connections."""

import asyncio
import contextlib
import datetime as dt
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from engine.http import incoming_requests
from engine.http import server as http_server
from engine.identity import certificates
from tests.api.servers import TOKEN, client, serving

HALF = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _ok(_request: Request) -> Response:
    return Response("ok")


@contextlib.asynccontextmanager
async def listening(
    connections_max: int = 10,
    tls: certificates.Certificates | None = None,
    answer: Callable[[Request], Awaitable[Response]] = _ok,
) -> AsyncGenerator[int]:
    """The port of a server with only one route, which answers `ok`, or as ``answer`` does."""
    with contextlib.closing(http_server.listen("127.0.0.1", 0)) as listener:
        # A small buffer: the server sees progress once the system has sent a part of it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        application = Starlette(routes=[Route("/", answer)])
        server = http_server.server(application, tls, connections_max)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await running


async def opened(port: int, sent: bytes = b"") -> Pair:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    return reader, writer


async def answer_of(pair: Pair) -> bytes:
    """Return all bytes until the server closes the connection."""
    try:
        async with asyncio.timeout(5):
            return await pair[0].read()
    except ConnectionError:
        return b""
    finally:
        pair[1].close()


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(incoming_requests, "SILENT_SECONDS", 0.2)


@pytest.mark.usefixtures("_soon")
async def test_incomplete_head_times_out() -> None:
    async with listening() as port:
        silent, half = await opened(port), await opened(port, HALF)
        assert [await answer_of(silent), await answer_of(half)] == [b"", b""]


@pytest.mark.usefixtures("_soon")
async def test_trickling_head_times_out() -> None:
    async with listening() as port:
        reader, writer = await opened(port, HALF)
        with contextlib.suppress(ConnectionError):
            for _ in range(100):
                writer.write(b"x: y\r\n")
                await writer.drain()
                await asyncio.sleep(0.02)
        assert await answer_of((reader, writer)) == b""


@pytest.mark.usefixtures("_soon")
async def test_idle_keepalive_connection_stays_open_until_an_incomplete_second_head() -> None:
    async with listening() as port:
        reader, writer = await opened(port, HALF + b"\r\n")
        assert await reader.readuntil(b"ok")
        await asyncio.sleep(0.4)
        writer.write(HALF + b"\r\n")
        assert await reader.readuntil(b"ok")
        writer.write(HALF)
        assert await answer_of((reader, writer)) == b""


@contextlib.asynccontextmanager
async def streaming(
    size: int, tls: certificates.Certificates | None
) -> AsyncGenerator[tuple[int, asyncio.Event]]:
    """The port of a server that answers with this many bytes, and an event that is set when the response has ended."""
    ended = asyncio.Event()

    async def parts() -> AsyncGenerator[bytes]:
        try:
            for _ in range(size // http_server.PIECE_BYTES):
                yield bytes(http_server.PIECE_BYTES)
        finally:
            ended.set()

    async def answer(_request: Request) -> Response:
        return StreamingResponse(parts())

    async with listening(10, tls, answer) as port:
        yield port, ended


Security = tuple[certificates.Certificates, ssl.SSLContext] | tuple[None, None]
"""The certificates of a server and the TLS context of its clients; None without TLS."""


@pytest.fixture(params=[False, True], ids=["plain", "TLS"])
def security(request: pytest.FixtureRequest, tmp_path: Path) -> Security:
    if not request.param:
        return None, None
    made = certificates.make(tmp_path, dt.datetime.now(dt.UTC), ("127.0.0.1",))
    return made, ssl.create_default_context(cadata=made.authority.decode())


def test_client_that_accepts_no_data_is_disconnected(
    security: Security, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "SEND_SECONDS", 0.3)
    made, trusted = security

    async def play() -> None:
        async with streaming(2**30, made) as (port, ended):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
            writer.write(HALF + b"\r\n")
            await asyncio.wait_for(ended.wait(), 10)
            writer.transport.abort()
            await asyncio.sleep(0.05)

    with asyncio.Runner(loop_factory=http_server.new_event_loop) as runner:
        runner.run(play())


def test_slow_client_gets_the_whole_response(security: Security, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SEND_SECONDS", 1)
    made, trusted = security
    size = 32 * http_server.PIECE_BYTES

    async def play() -> None:
        async with streaming(size, made) as (port, ended):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
            writer.write(HALF + b"connection: close\r\n\r\n")
            received, began_s = 0, time.monotonic()
            while part := await reader.read(size // 100):
                received += len(part)
                await asyncio.sleep(0.02)
            writer.close()
            await writer.wait_closed()
            assert received > size
            assert ended.is_set()
            assert time.monotonic() - began_s > http_server.SEND_SECONDS

    with asyncio.Runner(loop_factory=http_server.new_event_loop) as runner:
        runner.run(play())


async def test_connections_over_the_limit_are_answered_503_and_closed() -> None:
    async with listening(connections_max=2) as port:
        first, second = await opened(port, HALF), await opened(port, HALF)
        refused = await answer_of(await opened(port))
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 1" in refused
        assert b"--max-connections" in refused
        first[1].close()
        await asyncio.sleep(0.05)
        again = await answer_of(await opened(port, HALF + b"connection: close\r\n\r\n"))
        assert again.startswith(b"HTTP/1.1 200 ")
        second[1].close()


def test_missing_tls_handshake_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.2)
    made = certificates.make(tmp_path, dt.datetime.now(dt.UTC), ("127.0.0.1",))

    async def play() -> None:
        async with listening(tls=made) as port:
            assert await answer_of(await opened(port)) == b""
            trusted = ssl.create_default_context(cadata=made.authority.decode())
            pair = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
            pair[1].write(HALF + b"connection: close\r\n\r\n")
            assert (await answer_of(pair)).endswith(b"ok")

    with asyncio.Runner(loop_factory=http_server.new_event_loop) as runner:
        runner.run(play())


@pytest.mark.usefixtures("_soon")
async def test_incomplete_body_times_out() -> None:
    async def sent() -> AsyncGenerator[bytes]:
        yield b'{"a": '
        await asyncio.Event().wait()

    async with serving() as services, client(services, TOKEN) as http:
        refused = await http.post("/api/v1/agents/member1/reports", content=sent())

    assert refused.status_code == 408
    assert refused.headers["connection"] == "close"
    assert refused.json()["error"]["reason"] == "no data of the request body arrived for 0 s"


def test_file_limit_is_raised_to_the_connection_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[tuple[int, int]] = []

    def now(_kind: int) -> tuple[int, int]:
        return 1_024, 524_288

    def change(_kind: int, limits: tuple[int, int]) -> None:
        allowed.append(limits)

    monkeypatch.setattr(http_server.resource, "getrlimit", now)
    monkeypatch.setattr(http_server.resource, "setrlimit", change)
    http_server.allow_files(2_000)
    http_server.allow_files(100)
    assert allowed == [(4_256, 524_288)]


def test_used_port_is_reported() -> None:
    with (
        contextlib.closing(http_server.listen("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match="in use"),
    ):
        http_server.listen("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize("size", [0, 1, http_server.PIECE_BYTES, http_server.PIECE_BYTES + 1, 3_000_000])
async def test_large_body_is_sent_in_pieces_that_yield_to_the_event_loop(size: int) -> None:
    sent: list[dict[str, object]] = []

    async def send(message: MutableMapping[str, object]) -> None:
        sent.append(dict(message))

    async def answer(_scope: object, _receive: object, send: Callable[..., Awaitable[None]]) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(size)})

    async def receive() -> MutableMapping[str, object]:
        return {}

    await http_server.in_pieces(answer)({}, receive, send)

    pieces = [message for message in sent if message["type"] == "http.response.body"]
    bodies = [piece["body"] for piece in pieces]
    assert all(isinstance(body, bytes) and len(body) <= http_server.PIECE_BYTES for body in bodies)
    assert sum(len(body) for body in bodies if isinstance(body, bytes)) == size
    assert [bool(piece.get("more_body")) for piece in pieces] == [True] * (len(pieces) - 1) + [False]


async def test_upgrade_is_left_to_the_application_without_a_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with listening() as port:
        reader, writer = await opened(port, HALF + upgrade)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
    assert "upgrade" not in caplog.text.lower()
    assert "WebSocket" not in caplog.text
