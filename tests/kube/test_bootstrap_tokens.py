"""Bootstrap tokens: which Secrets authenticate a client, and which sign."""

import base64
import hashlib
import hmac
from collections.abc import Mapping

import pytest

from engine.kubeapi.rights import bootstrap_tokens, rbac
from events import times
from events.kube_objects import KubeObject
from tests.builders.manifests import manifest

NOW = "2026-01-01T00:00:00Z"
NOW_MS = times.from_text(NOW)
ID, SECRET = "abcdef", "0123456789abcdef"
BOTH = {"usage-bootstrap-authentication": "true", "usage-bootstrap-signing": "true"}


def token(
    data: Mapping[str, str] | None = None,
    *,
    name: str = "bootstrap-token-abcdef",
    type_name: str = bootstrap_tokens.SECRET_TYPE,
) -> KubeObject:
    """Return the Secret of a token, which is valid unless ``data`` or another argument changes it."""
    texts = {"token-id": ID, "token-secret": SECRET, **BOTH, **(data or {})}
    encoded = {field: base64.b64encode(text.encode()).decode() for field, text in texts.items()}
    return KubeObject(manifest("v1", "Secret", name, "kube-system", type=type_name, data=encoded))


def test_token_authenticates_a_user_of_its_groups() -> None:
    groups = "system:bootstrappers:b,system:bootstrappers:a,system:bootstrappers:b"
    assert bootstrap_tokens.user(token({"auth-extra-groups": groups}), SECRET, NOW_MS) == rbac.User(
        name="system:bootstrap:abcdef",
        groups=(
            "system:bootstrappers",
            "system:bootstrappers:a",
            "system:bootstrappers:b",
            "system:authenticated",
        ),
    )


@pytest.mark.parametrize(
    "groups",
    [
        "system:masters",
        "system:bootstrappers:a,system:masters",
        "system:bootstrappers:a, system:bootstrappers:b",
        "system:bootstrappers:a,",
        "system:bootstrappers:a/b",
    ],
)
def test_token_for_other_or_malformed_groups_is_invalid(groups: str) -> None:
    assert bootstrap_tokens.user(token({"auth-extra-groups": groups}), SECRET, NOW_MS) is None


@pytest.mark.parametrize("secret", ["", "0123456789abcdee"])
def test_wrong_secret_does_not_authenticate(secret: str) -> None:
    assert bootstrap_tokens.user(token(), secret, NOW_MS) is None
    assert bootstrap_tokens.user(token({"token-secret": ""}), secret, NOW_MS) is None


@pytest.mark.parametrize(
    "invalid",
    [
        token(type_name="Opaque"),
        token().with_metadata({"deletionTimestamp": NOW}),
        token(name="bootstrap-token-other1"),
        token({"token-id": "ABCDEF"}, name="bootstrap-token-ABCDEF"),
        token({"token-secret": "short"}),
        token({"expiration": NOW}),
        token({"expiration": "tomorrow"}),
        token().with_fields({"data": {**token().object_at("data"), "token-secret": "?"}}),
        token().with_fields({"data": {**token().object_at("data"), "token-secret": "/w=="}}),
    ],
)
def test_invalid_or_expired_token_neither_authenticates_nor_signs(invalid: KubeObject) -> None:
    for secret in (SECRET, "short"):
        assert bootstrap_tokens.user(invalid, secret, NOW_MS) is None
    assert bootstrap_tokens.signature(invalid, "content", NOW_MS) is None


def test_token_is_valid_until_its_expiration() -> None:
    value = token({"expiration": NOW})
    assert bootstrap_tokens.user(value, SECRET, NOW_MS - 1) is not None
    assert bootstrap_tokens.signature(value, "content", NOW_MS - 1) is not None


def test_token_is_valid_for_its_usages_only() -> None:
    signing = token({"usage-bootstrap-authentication": "false"})
    assert bootstrap_tokens.user(signing, SECRET, NOW_MS) is None
    assert bootstrap_tokens.signature(signing, "content", NOW_MS) is not None
    authenticating = token({"usage-bootstrap-signing": "no"})
    assert bootstrap_tokens.user(authenticating, SECRET, NOW_MS) is not None
    assert bootstrap_tokens.signature(authenticating, "content", NOW_MS) is None


def test_signature_is_detached_from_its_content() -> None:
    signed = bootstrap_tokens.signature(token(), "content", NOW_MS)
    assert signed is not None
    name, text = signed
    header, content, mac = text.split(".")
    assert (name, content) == (ID, "")
    assert base64.urlsafe_b64decode(header + "==") == b'{"alg":"HS256","kid":"abcdef"}'
    encoded = base64.urlsafe_b64encode(b"content").rstrip(b"=")
    expected = hmac.digest(SECRET.encode(), header.encode() + b"." + encoded, hashlib.sha256)
    assert base64.urlsafe_b64decode(mac + "=") == expected


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (f"{ID}.{SECRET}", (ID, SECRET)),
        (ID, ("", "")),
        (f"{ID}.short", ("", "")),
        (f"ABCDEF.{SECRET}", ("", "")),
        (f"{ID}0.{SECRET}", ("", "")),
        (f"{ID}.{SECRET}0", ("", "")),
    ],
)
def test_other_tokens_are_not_taken_for_bootstrap_tokens(text: str, parts: tuple[str, str]) -> None:
    assert bootstrap_tokens.split(text) == parts
