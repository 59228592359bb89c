"""Browser sessions: a signed random id that permits reads for eight hours, at this server only.

A browser gets a session for the server's token or for the login code that ``reballast up`` prints. The key that signs
ids is derived from the token. So all replicas of a log accept an id, and none has to store it. The token itself is
never a cookie, because browsers send cookies to every port of a host.
"""

import math
import secrets
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from engine.http.incoming_requests import is_same
from engine.kubeapi.rights import service_tokens

SESSION_SECONDS: Final = 8 * 3_600
LOGIN_SECONDS: Final = 900
"""Lifetime in seconds of a login code that is not printed on a terminal, since a log file may keep it."""

_ID_BYTES: Final = 18
_PURPOSE: Final = b"reballast session"
_CHARS_MAX: Final = 256


class Login(Struct, frozen=True):
    """A code that starts a browser session (empty: none), and its expiry in seconds since 1970."""

    code: str = ""
    until_s: float = math.inf


NO_LOGIN: Final = Login()


class Sessions:
    """Create and check session ids; ``clock`` returns seconds since 1970."""

    def __init__(self, token: str, login: Login, clock: Callable[[], float]) -> None:
        self._token = token
        self._login = login
        self._clock = clock
        self._key = service_tokens.signature_of(_PURPOSE, token.encode())

    def is_token(self, token: str) -> bool:
        return is_same(token, self._token)

    def is_login(self, code: str) -> bool:
        """Whether ``code`` is the login code and has not expired."""
        return (
            is_same(code, self._login.code) and bool(self._login.code) and self._clock() < self._login.until_s
        )

    def new(self) -> str:
        payload = f"{secrets.token_urlsafe(_ID_BYTES)}.{int(self._clock()) + SESSION_SECONDS}"
        return f"{payload}.{self._signature(payload)}"

    def is_open(self, session_id: str) -> bool:
        """Whether the session id is correctly signed and has not expired."""
        payload, _, signature = session_id.rpartition(".")
        expires = payload.rpartition(".")[2]
        if len(session_id) > _CHARS_MAX or not (expires.isascii() and expires.isdecimal()):
            return False
        return is_same(signature, self._signature(payload)) and self._clock() < int(expires)

    def _signature(self, payload: str) -> str:
        digest = service_tokens.signature_of(payload.encode("utf-8", "replace"), self._key)
        return service_tokens.base64url(digest).decode()


def new_code() -> str:
    return secrets.token_urlsafe(_ID_BYTES)
