"""What every request passes: the token, and headers that keep browsers from doing more than they are told.

Health alone needs no token; agents have tokens of their own, which their routes look at. A browser gets it once, as
``/?token=...``, and keeps it as a cookie that only reads.
"""

import hmac
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.gateway.refusals import RefusalError

_OPEN: Final = frozenset({"/healthz", "/readyz"})
_AGENTS: Final = "/api/v1/agents/"
_COOKIE: Final = "reballast"
_READING: Final = frozenset({"GET", "HEAD"})
_CHALLENGE: Final = {"www-authenticate": "Bearer"}
_QUERY_BYTES_MAX: Final = 16 * 1024
_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class Guard:
    """Middleware round the whole server."""

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request pass, or answers it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if len(scope["query_string"]) > _QUERY_BYTES_MAX:
            refusal = RefusalError(414, "query", f"over {_QUERY_BYTES_MAX} bytes", "ask for less at once")
            await refusal.response()(scope, receive, guarded)
        elif scope["path"] in _OPEN or scope["path"].startswith(_AGENTS) or self._is_known(scope):
            await self._app(scope, receive, guarded)
        elif self._is_introduced(scope):
            response = RedirectResponse("/", 303)
            response.set_cookie(_cookie_name(scope), self._token.decode(), httponly=True, samesite="strict")
            await response(scope, receive, guarded)
        else:
            remedy = (
                "send endpoint.json's token as: Authorization: Bearer ...; browsers: open what up printed"
            )
            refusal = RefusalError(401, "authorization", "the token is missing or wrong", remedy)
            await refusal.response(_CHALLENGE)(scope, receive, guarded)

    def _is_known(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(token.strip()):
            return True
        # A cookie is sent by itself, so it may not write.
        return scope["method"] in _READING and self._is_token(
            _cookie(headers.get("cookie", ""), _cookie_name(scope))
        )

    def _is_introduced(self, scope: Scope) -> bool:
        if scope["path"] != "/" or scope["method"] != "GET":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
        return self._is_token(given[0])

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)


def _cookie_name(scope: Scope) -> str:
    """Browsers share cookies between the ports of a host, so each server has its own."""
    _host, port = scope.get("server") or ("", None)
    return f"{_COOKIE}-{port}" if port else _COOKIE


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found else ""
