"""Host names under which a server answers: loopback names, its own address, and configured names.

A web page can point its own domain at the loopback address (DNS rebinding); the browser then sends the page's
requests here. Such a request names the page's domain in its Host header and is refused.
"""

import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from events import limits

_LOCALHOST: Final = "localhost"
_PORT: Final = re.compile(r":\d*$")
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*")

Answer = Callable[[Request, str], Awaitable[Response]]
"""Make the response that refuses a request for a host."""


class Hosts:
    """The names under which a server answers, beside loopback names and its own address."""

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._allowed = frozenset(map(normal, allowed))

    def refused(self, scope: Scope) -> str:
        """The host of a request that this server does not answer; empty if it does.

        A request without a Host header is answered: no browser sends one.
        """
        for name, value in scope["headers"]:
            if name == b"host":
                host = value.decode("latin-1")
                known = normal(host)
                # The server's own address is the one that the connection was made to.
                server, _port = scope.get("server") or ("", None)
                if not (known in self._allowed or known == server or is_loopback(known)):
                    return host[: limits.SHOWN_CHARS_MAX]
        return ""


class HostCheck:
    """ASGI middleware that refuses requests for hosts that are not ``allowed``, with the response of ``refuse``."""

    def __init__(self, app: ASGIApp, *, allowed: Iterable[str] = (), refuse: Answer) -> None:
        self._app = app
        self._hosts = Hosts(allowed)
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (host := self._hosts.refused(scope)):
            answer = await self._refuse(Request(scope), host)
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)


def normal(host: str) -> str:
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


def remedy(host: str) -> str:
    """The remedy to show with the refusal of a host."""
    shown = normal(host)
    named = shown if is_host(shown) else "NAME"
    return f"use the address that the server printed, or start it with: --allowed-host {named}"
