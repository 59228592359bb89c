"""Incoming requests of every server: the host that they name, their trace, and their body.

A web page can point its own domain at the loopback address (DNS rebinding); the browser then sends the page's
requests here. Such a request names the page's domain in its Host header and is refused. Allowed are loopback names,
the server's own address, and configured names. Bodies are read with a size limit and a timeout for silent clients.
"""

import asyncio
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from engine import diagnostics, loop_share
from engine.writing import request_origins
from engine.writing.request_origins import CURRENT, Origin
from events import tracing
from events.limits import shortened

READS: Final = frozenset({"GET", "HEAD"})
"""Methods of requests that change nothing."""

SILENT_SECONDS: Final = 30.0
"""Longest pause of a client in the middle of a body."""

_CLOSED: Final = 499
"""Status of a response that no client reads; proxies log the same status for a closed connection."""

_log = diagnostics.logger("gateway")

_LOCALHOST: Final = "localhost"
_PORT: Final = re.compile(r":\d*$")
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*")

HostRefusal = Callable[[Request, str], Awaitable[Response]]
"""A function that returns the response to a request whose host (the second argument) is refused."""


def bearer_token(headers: Headers) -> str:
    """The token in the header Authorization; empty if there is no such header or its scheme is not Bearer."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def is_same(text: str, secret: str) -> bool:
    """Compare a client's text with a secret, in a time that does not depend on their content."""
    # Compare bytes, because compare_digest refuses text that is not ASCII.
    return hmac.compare_digest(text.encode("utf-8", "replace"), secret.encode())


class Hosts:
    """The names under which a server answers, beside loopback names and its own address."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = frozenset(map(normal_host, allowed))

    def refused(self, scope: Scope) -> str:
        """Return the host of a request that must be refused, shortened for a message; empty if it is allowed.

        A request without a Host header is allowed: browsers always send the header.
        """
        for name, value in scope["headers"]:
            if name == b"host":
                host = value.decode("latin-1")
                known = normal_host(host)
                # The server's own address is the one that the connection was made to.
                server, _port = scope.get("server") or ("", None)
                if not (known in self._allowed or known == server or is_loopback(known)):
                    return shortened(host)
        return ""


class HostCheck:
    """ASGI middleware that refuses requests for hosts that are not ``allowed``, with the response of ``refuse``."""

    def __init__(self, app: ASGIApp, *, allowed: Iterable[str] = (), refuse: HostRefusal) -> None:
        self._app = app
        self._hosts = Hosts(allowed)
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (host := self._hosts.refused(scope)):
            answer = await self._refuse(Request(scope), host)
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)


def normal_host(host: str) -> str:
    """A host without its port, in lower case; IPv6 addresses without brackets."""
    return _PORT.sub("", host.strip()).lower().removesuffix(".").removeprefix("[").removesuffix("]")


def is_loopback(host: str) -> bool:
    """Whether a host is ``localhost`` or a loopback address."""
    if host == _LOCALHOST or host.endswith(f".{_LOCALHOST}"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_host(text: str) -> bool:
    """Whether a text is a host name or an IP address, without a port."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return _NAME.fullmatch(text.lower()) is not None
    return True


def host_remedy(host: str) -> str:
    """Return the remedy for a client whose request was refused because of its host."""
    shown = normal_host(host)
    named = shown if is_host(shown) else "NAME"
    return f"use the address that the server printed, or start it with: --allowed-host {named}"


@contextmanager
def traced(headers: Headers) -> Generator[None]:
    """Within the block, make the trace in the headers ``traceparent`` and ``tracestate`` the current trace."""
    origin = request_origins.NO_ORIGIN
    if parent := headers.get("traceparent"):
        # ``tracestate`` may be split over several headers.
        origin = Origin(tracing.trace(parent, ",".join(headers.getlist("tracestate"))))
    token = CURRENT.set(origin)
    try:
        yield
    finally:
        CURRENT.reset(token)


class Traced:
    """ASGI middleware that sets the trace of each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with traced(Headers(scope=scope)):
            await self._app(scope, receive, send)


class TooLargeError(Exception):
    """The body exceeds its limit; the message names the limit."""


class StalledError(Exception):
    """The client stopped sending in the middle of a body; the message names the timeout."""


def announced_bytes(request: Request) -> int:
    """Content-Length in bytes; ``LARGE_BYTES + 1`` if it is missing, so that the body is handled in a thread."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() else loop_share.LARGE_BYTES + 1


async def read_body(request: Request, bytes_max: int) -> bytes:
    """Read the whole body.

    Raises TooLargeError as soon as the limit is exceeded, StalledError if the client stops sending, and
    ClientDisconnect if it disconnects.
    """
    content = bytearray()
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(SILENT_SECONDS) as silence:
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                content += message.get("body", b"")
                if len(content) > bytes_max:
                    raise TooLargeError(f"the body has more than {bytes_max} bytes")
                if not message.get("more_body", False):
                    return bytes(content)
                silence.reschedule(loop.time() + SILENT_SECONDS)
    except TimeoutError:
        raise StalledError(f"no data of the request body arrived for {SILENT_SECONDS:.0f} s") from None


async def disconnected(request: Request, _error: Exception) -> Response:
    """The response for a client that disconnected in the middle of a body; for ``exception_handlers``."""
    _log.debug("client disconnected", method=request.method, path=request.url.path)
    return Response(status_code=_CLOSED)
