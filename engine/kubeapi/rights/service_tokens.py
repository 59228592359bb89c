"""Service account tokens: signed claims (JSON Web Tokens, HMAC-SHA-256).

A token names its account; the caller must check that the account still exists with the same uid. All servers
with the same key accept each other's tokens.
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
    """Claims of a token: the account, the object it is bound to, and the expiry (Unix seconds; 0 for never).

    ``member`` restricts the token to the API of that member cluster; with ``account`` it is the token of a service
    account in that member. ``agent`` names the cluster whose agent uses the token; such a token is not valid for any
    Kubernetes API.
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
    """A token with a wrong form or signature, or an expired one; the message says which."""


def key_of(secret: str) -> bytes:
    """Derive the signing key from the server's own token."""
    # BLAKE2b accepts keys of at most 64 bytes.
    return hashlib.blake2b(b"tokens of service accounts", key=secret.encode()[:64]).digest()


def signed(claims: Claims, key: bytes) -> str:
    """Return the signed token; equal claims give equal tokens."""
    content = b".".join((base64url(_HEAD), base64url(msgspec.json.encode(claims))))
    return b".".join((content, base64url(signature_of(content, key)))).decode()


def read(token: str, key: bytes, now_s: int) -> Claims:
    """Verify a token and return its claims; raises TokenError, also if it has expired at ``now_s``."""
    encoded = token.encode("ascii", "replace")
    content, _dot, signature = encoded.rpartition(b".")
    if len(encoded) > TOKEN_BYTES_MAX or encoded.count(b".") != _PARTS - 1:
        raise TokenError("no token of this server")
    if not hmac.compare_digest(base64url(signature_of(content, key)), signature):
        raise TokenError("signed with another key")
    # Decoded only after the signature matched: until then the claims are untrusted input.
    encoded_claims = content.partition(b".")[2]
    padding = b"=" * (-len(encoded_claims) % 4)
    claims = msgspec.json.decode(base64.urlsafe_b64decode(encoded_claims + padding), type=Claims)
    if claims.exp and claims.exp <= now_s:
        raise TokenError("expired")
    return claims


def signature_of(content: bytes, key: bytes) -> bytes:
    """Return the HMAC-SHA-256 of some content."""
    return hmac.digest(key, content, "sha256")


def base64url(value: bytes) -> bytes:
    """Encode bytes as JSON Web Tokens and signatures do: base64url without padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=")
