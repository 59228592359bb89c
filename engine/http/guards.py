"""Authentication and security headers for every request.

Only the health routes, the style sheet and the icon need no token; the agents' routes check their own tokens.
A browser sends the login code or the token once, as ``/?login=...`` or ``/?token=...``, and gets a session cookie,
which only permits reads.
"""

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.http.errors import RefusalError
from engine.http.incoming_requests import READS, bearer_token
from engine.http.pages import errors
from engine.http.sessions import LOGIN_SECONDS, SESSION_SECONDS, Sessions

_OPEN: Final = frozenset({"/healthz", "/readyz"})
_FILES: Final = frozenset({"/style.css", "/icon.svg"})
"""Files that error pages need; anyone may read them."""

_AGENTS: Final = "/api/v1/agents/"
_COOKIE: Final = "reballast"
_CHALLENGE: Final = {"www-authenticate": "Bearer"}
_QUERY_BYTES_MAX: Final = 16 * 1024
_REMEDY: Final = (
    "send endpoint.json's token as: Authorization: Bearer ...; "
    "in a browser, open the address that the server printed"
)
_REMEDY_OF_LOGIN: Final = (
    "restart the server, which prints a new address; "
    f"an address that is not on a terminal is valid for {LOGIN_SECONDS // 60} minutes"
)
_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class Guard:
    """ASGI middleware that authenticates requests and adds security headers."""

    def __init__(self, app: ASGIApp, *, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = await self._answer(Request(scope))
        await (answer or self._app)(scope, receive, guarded)

    async def _answer(self, request: Request) -> Response | None:
        """The response that rejects or redirects a request; None if it may pass."""
        if len(request.scope["query_string"]) > _QUERY_BYTES_MAX:
            refusal = RefusalError(
                414, "query", f"the query has more than {_QUERY_BYTES_MAX} bytes", "send a shorter query"
            )
            return await errors.answer(request, refusal)
        # Do this before the session check: a browser that has a session must be redirected too, so that the code
        # or token does not stay in its address bar.
        if self._has_login(request):
            return self._session_redirect(request.scope)
        path = str(request.scope["path"])
        if path in _OPEN or path in _FILES or path.startswith(_AGENTS) or self._is_authenticated(request):
            return None
        refusal = (
            RefusalError(401, "login", "the login code is wrong or has expired", _REMEDY_OF_LOGIN)
            if "login" in request.query_params
            else RefusalError(401, "authorization", "the token is missing or wrong", _REMEDY)
        )
        return await errors.answer(request, refusal, _CHALLENGE)

    def _session_redirect(self, scope: Scope) -> Response:
        response = RedirectResponse("/", 303)
        response.set_cookie(
            _cookie_name(scope),
            self._sessions.new(),
            max_age=SESSION_SECONDS,
            path="/",
            secure=scope["scheme"] == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    def _is_authenticated(self, request: Request) -> bool:
        if self._sessions.is_token(bearer_token(request.headers)):
            return True
        # Browsers attach cookies to requests made by any site, so a cookie never permits writes (CSRF).
        session = request.cookies.get(_cookie_name(request.scope), "")
        return request.method in READS and self._sessions.is_open(session)

    def _has_login(self, request: Request) -> bool:
        if request.scope["path"] != "/" or request.method != "GET":
            return False
        parameters = request.query_params
        return self._sessions.is_login(parameters.get("login", "")) or self._sessions.is_token(
            parameters.get("token", "")
        )


def _cookie_name(scope: Scope) -> str:
    """The session cookie's name; contains the port, because browsers share cookies between the ports of a host.

    With TLS, the ``__Host-`` prefix makes browsers refuse a cookie set by another host or without TLS.
    """
    _host, port = scope.get("server") or ("", None)
    name = f"{_COOKIE}-{port}" if port else _COOKIE
    return f"__Host-{name}" if scope["scheme"] == "https" else name
