"""HTTP server of each API, with limits on connections and time.

A client has ``HEAD_SECONDS`` for the TLS handshake and for each request head, and is disconnected if it accepts no data
of a response for ``SEND_SECONDS``. A connection over the limit gets 503 and is closed.
"""

import asyncio
import contextlib
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from pathlib import Path
from typing import Any, Final

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from engine import diagnostics
from engine.identity import certificates, client_certificates

CONNECTIONS_MAX: Final = 2_000
"""Default maximum of simultaneous connections per API."""

HEAD_SECONDS: Final = 10.0
"""Time limit for the TLS handshake and for each request head."""

SEND_SECONDS: Final = 30
"""A client that accepts no data of a response for this long is disconnected."""

_KEEP_ALIVE_SECONDS: Final = 120
"""Longer than Go's clients keep idle connections, so that no request meets a connection that is being closed."""

_BACKLOG: Final = 256
_STOP_SECONDS: Final = 5
_FILES_MAX: Final = 65_536
_FILES_OF_OTHERS: Final = 256
"""Number of open files that the process needs in addition to connections."""

_LOG_PAUSE_SECONDS: Final = 10.0
_BODY: Final = (
    b'{"error":{"field":"connections","reason":"too many connections are open",'
    b'"remedy":"close some, try again later, or start the server with a higher --max-connections"}}'
)
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(_BODY)
) + _BODY

PIECE_BYTES: Final = 256 * 1024

_log = diagnostics.logger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class Server(uvicorn.Server):
    """A uvicorn server without signal handlers; the process handles signals itself."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Install no signal handlers."""
        yield


class _Protocol(HttpToolsProtocol):
    """One connection, with a time limit for each request head and a limit on the number of connections."""

    def __init__(self, *args: Any, **more: Any) -> None:  # noqa: ANN401  # as uvicorn gives them
        super().__init__(*args, **more)
        # uvicorn's own limit answers 503 but keeps the connections open.
        self._connections_max, self.limit_concurrency = self.limit_concurrency or CONNECTIONS_MAX, None
        self._head: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None
        self._client: client_certificates.Client | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        if certificate := transport.get_extra_info("peercert"):
            self._client = client_certificates.client_of(certificate)
        if len(self.connections) > self._connections_max:
            _log_full(self.loop.time(), self._connections_max)
            transport.write(_FULL)
            transport.close()
        else:
            self._expect_head()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: uvicorn would report a missing library, but the application itself answers upgrade requests."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self._end_sending()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_progress()

    def resume_writing(self) -> None:
        self._end_sending()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # uvicorn stops its keep-alive timer at the first byte of a request head, so limit the time for the rest of the
        # head here. ``cycle`` is None before the first request, although its annotation excludes None.
        is_idle = not self.cycle or self.cycle.response_complete
        if is_idle and self._head is None and not self.transport.is_closing():
            self._expect_head()

    def on_headers_complete(self) -> None:
        self._end_head()
        self.scope[client_certificates.SCOPE_KEY] = self._client  # pyright: ignore[reportGeneralTypeIssues]
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        self._end_head()
        super().on_response_complete()

    def _expect_head(self) -> None:
        self._head = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _expect_progress(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._sending = self.loop.call_later(SEND_SECONDS, self._check_progress, unsent)

    def _check_progress(self, unsent: int) -> None:
        # Abort instead of closing: ``close`` would wait until the client accepts the unsent data.
        if self.transport.get_write_buffer_size() >= unsent:
            self.transport.abort()
        else:
            self._expect_progress()

    def _end_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _end_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


class _Loop(uvloop.Loop):
    """The servers' event loop: TLS costs half as much as on asyncio's own."""

    def create_server(self, *args: Any, **more: Any) -> Any:  # noqa: ANN401  # as the loop takes them
        """Limit the time of the TLS handshake, for which uvicorn has no setting."""
        if more.get("ssl") is not None:
            more["ssl_handshake_timeout"] = HEAD_SECONDS
        return super().create_server(*args, **more)


_told_s = -_LOG_PAUSE_SECONDS


def _log_full(now_s: float, connections_max: int) -> None:
    global _told_s  # noqa: PLW0603  # one line for all connections of the process
    if now_s - _told_s >= _LOG_PAUSE_SECONDS:
        _told_s = now_s
        _log.warning("connections refused", open=connections_max, remedy="increase --max-connections")


def new_event_loop() -> asyncio.AbstractEventLoop:
    return _Loop()


def server(
    application: Application,
    tls: certificates.Certificates | None = None,
    connections_max: int = CONNECTIONS_MAX,
    clients: Path | None = None,
) -> Server:
    """Return a server of an application, with TLS if certificates are given.

    ``clients`` is a file with a CA certificate; client certificates signed by it are accepted but not required.
    """
    return Server(
        uvicorn.Config(
            in_pieces(application),
            http=_Protocol,
            limit_concurrency=connections_max,
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
            ssl_ca_certs=clients,
            ssl_cert_reqs=ssl.CERT_OPTIONAL if clients else ssl.CERT_NONE,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=_STOP_SECONDS,
            server_header=False,
            # No trusted proxy is assumed, so headers about the client are ignored.
            proxy_headers=False,
        )
    )


def in_pieces(application: Application) -> Application:
    """Wrap an application so that long responses are sent in pieces; other tasks run between them."""

    async def divided(scope: Message, receive: Receive, send: Send) -> None:
        async def send_divided(message: Message) -> None:
            body: bytes = message.get("body", b"")
            for start in range(0, len(body) - PIECE_BYTES, PIECE_BYTES):
                chunk = body[start : start + PIECE_BYTES]
                await send({"type": message["type"], "body": chunk, "more_body": True})
                await asyncio.sleep(0)
            last = (len(body) - 1) // PIECE_BYTES * PIECE_BYTES
            await send(message if last <= 0 else {**message, "body": body[last:]})

        await application(scope, receive, send_divided)

    return divided


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raises OSError if it cannot listen."""
    # With the protocol set to TCP, asyncio disables Nagle's delay on each connection.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def allow_files(connections_max: int) -> None:
    """Raise the process's limit of open files for two servers with this many connections, as far as permitted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 2 * connections_max + _FILES_OF_OTHERS
    most = min(files, hard if hard != resource.RLIM_INFINITY else _FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < files:
        _log.warning("open file limit is low", limit=most, wanted=files, remedy="raise ulimit -n")
