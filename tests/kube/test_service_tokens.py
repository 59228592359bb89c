"""Service account tokens: signed, verified with the key, and expiring."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.rights import service_tokens
from engine.kubeapi.rights.service_tokens import Claims, TokenError

KEY = service_tokens.key_of("a server's own token")
CLAIMS = Claims(
    sub="system:serviceaccount:shop:robot", namespace="shop", account="robot", uid="u", iat=1_000, exp=2_000
)


def test_signed_token_is_read() -> None:
    token = service_tokens.signed(CLAIMS, KEY)
    assert token == service_tokens.signed(CLAIMS, KEY)
    assert service_tokens.read(token, KEY, 1_999) == CLAIMS


def test_expired_token_is_refused() -> None:
    with pytest.raises(TokenError, match="expired"):
        service_tokens.read(service_tokens.signed(CLAIMS, KEY), KEY, 2_000)


def test_key_is_derived_from_a_token_of_any_length() -> None:
    for length in (0, 1, 64, 65, 1_000):
        key = service_tokens.key_of("x" * length)
        assert service_tokens.read(service_tokens.signed(CLAIMS, key), key, 0) == CLAIMS


def test_token_signed_with_another_key_is_refused() -> None:
    token = service_tokens.signed(CLAIMS, service_tokens.key_of("another token"))
    with pytest.raises(TokenError, match="another key"):
        service_tokens.read(token, KEY, 0)


@given(
    st.text(max_size=200) | st.binary(max_size=100).map(lambda raw: f"{raw.hex()}.{raw.hex()}.{raw.hex()}")
)
def test_arbitrary_text_is_no_token(text: str) -> None:
    with pytest.raises(TokenError):
        service_tokens.read(text, KEY, 0)


@given(st.data())
def test_changed_token_is_refused(data: st.DataObject) -> None:
    token = service_tokens.signed(CLAIMS, KEY)
    index = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("ABCxyz019-_.").filter(lambda candidate: candidate != token[index]))
    with pytest.raises(TokenError):
        service_tokens.read(token[:index] + letter + token[index + 1 :], KEY, 0)
