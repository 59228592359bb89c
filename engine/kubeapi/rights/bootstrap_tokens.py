"""Bootstrap tokens: Secrets in ``kube-system`` with which clusters that join authenticate and verify ``cluster-info``.

A token is ``ID.SECRET``. Its Secret has the type ``bootstrap.kubernetes.io/token`` and the name ``bootstrap-token-ID``,
and contains the token's expiration and the usages that it is valid for.
"""

import base64
import hmac
import re
from typing import Final

import msgspec

from engine.kubeapi.rights.rbac import AUTHENTICATED, User
from engine.kubeapi.rights.service_tokens import base64url
from events import times
from events.kube_objects import KubeObject

NAMESPACE: Final = "kube-system"
SECRET_TYPE: Final = "bootstrap.kubernetes.io/token"  # noqa: S105  # a type of Secret, no token
NAME_PREFIX: Final = "bootstrap-token-"
BOOTSTRAPPERS: Final = "system:bootstrappers"
_ID: Final = re.compile(r"[a-z0-9]{6}")
_SECRET: Final = re.compile(r"[a-z0-9]{16}")
_GROUP: Final = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


def split(token: str) -> tuple[str, str]:
    """Return id and secret of a token; both are empty if it has another form."""
    name, _, secret = token.partition(".")
    return (name, secret) if _ID.fullmatch(name) and _SECRET.fullmatch(secret) else ("", "")


def user(value: KubeObject, secret: str, now_ms: int) -> User | None:
    """Return the user whom the Secret authenticates; None if ``secret`` is wrong or may not authenticate now."""
    data = _valid(value, now_ms, "authentication")
    if not hmac.compare_digest(data.get("token-secret", "").encode(), secret.encode()) or not secret:
        return None
    extra = data.get("auth-extra-groups", "")
    groups = extra.split(",") if extra else []
    if not all(map(_GROUP.fullmatch, groups)):
        return None
    named = (BOOTSTRAPPERS, *sorted(set(groups)), AUTHENTICATED)
    return User(name=f"system:bootstrap:{data['token-id']}", groups=named)


def signature(value: KubeObject, content: str, now_ms: int) -> tuple[str, str] | None:
    """Return the token's id and its detached signature of a text (JWS, HS256); None if it may not sign now."""
    data = _valid(value, now_ms, "signing")
    if not data:
        return None
    header = base64url(msgspec.json.encode({"alg": "HS256", "kid": data["token-id"]}))
    mac = hmac.digest(data["token-secret"].encode(), header + b"." + base64url(content.encode()), "sha256")
    return data["token-id"], b"..".join((header, base64url(mac))).decode()


def _valid(value: KubeObject, now_ms: int, usage: str) -> dict[str, str]:
    """Return the decoded data of a Secret; empty if its token is not valid for ``usage`` now."""
    if value.at("type") != SECRET_TYPE or value.is_ending:
        return {}
    data = {name: _decoded(text) for name, text in value.object_at("data").items()}
    name = data.get("token-id", "")
    is_whole = _ID.fullmatch(name) and _SECRET.fullmatch(data.get("token-secret", ""))
    if not is_whole or value.name != f"{NAME_PREFIX}{name}":
        return {}
    if data.get(f"usage-bootstrap-{usage}") != "true" or _is_expired(data.get("expiration", ""), now_ms):
        return {}
    return data


def _is_expired(text: str, now_ms: int) -> bool:
    """Whether a token has expired; True if its expiration is unreadable."""
    if not text:
        return False
    try:
        return times.from_text(text) <= now_ms
    except ValueError:
        return True


def _decoded(text: object) -> str:
    try:
        return base64.b64decode(str(text), validate=True).decode()
    except ValueError:
        return ""
