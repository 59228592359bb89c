"""Tokens of service accounts: signed claims (JSON Web Tokens, HMAC with SHA-256), made and read.

A token says for whom it was made; whether that account is still there, and the same, is found out by whoever asks.
All servers with the same key take one another's tokens.
"""

import base64
import hashlib
import hmac
from typing import Final

import msgspec
from msgspec import Struct

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
TOKEN_BYTES_MAX: Final = 16_384
_HEAD: Final = b'{"alg":"HS256","typ":"JWT"}'
_PARTS: Final = 3


class Claims(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a token says: the account, what it is bound to, and until when it holds (seconds; 0 for ever).

    ``member`` is the cluster whose API is all that the token opens; ``agent`` the one whose agent it is for, and then
    it opens no Kubernetes API at all.
    """

    iss: str = ISSUER
    sub: str
    aud: tuple[str, ...] = ()
    iat: int = 0
    exp: int = 0
    namespace: str = ""
    account: str = ""
    uid: str = ""
    bound_kind: str = ""
    bound_name: str = ""
    bound_uid: str = ""
    member: str = ""
    agent: str = ""


class TokenError(ValueError):
    """A text that is no token of ours, or holds no more; the words say which."""


def key_of(secret: str) -> bytes:
    """The key that follows from a server's own token."""
    return hashlib.blake2b(b"tokens of service accounts", key=secret.encode()[:64]).digest()


def signed(claims: Claims, key: bytes) -> str:
    """The token with these claims: the same for the same."""
    content = b".".join((_text(_HEAD), _text(msgspec.json.encode(claims))))
    return b".".join((content, _text(_signature(content, key)))).decode()


def read(token: str, key: bytes, now_s: int) -> Claims:
    """The claims of a token that holds now; raises TokenError."""
    given = token.encode("ascii", "replace")
    content, _dot, signature = given.rpartition(b".")
    if len(given) > TOKEN_BYTES_MAX or given.count(b".") != _PARTS - 1:
        raise TokenError("no token of this server")
    if not hmac.compare_digest(_text(_signature(content, key)), signature):
        raise TokenError("signed by somebody else")
    claims = msgspec.json.decode(_bytes(content.partition(b".")[2]), type=Claims)
    if claims.exp and claims.exp <= now_s:
        raise TokenError("expired")
    return claims


def _signature(content: bytes, key: bytes) -> bytes:
    return hmac.digest(key, content, "sha256")


def _text(value: bytes) -> bytes:
    return base64.urlsafe_b64encode(value).rstrip(b"=")


def _bytes(text: bytes) -> bytes:
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))
