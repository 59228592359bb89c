"""Depth is counted over bytes, JSON or not, and as a plain reading of the value counts it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.validation import depths

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='[]{}"\\a\u20ac'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='[{"\\'), inner, max_size=3),
    max_leaves=20,
)


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return 0


@given(JSON, st.integers(0, 8))
def test_it_is_the_depth_of_the_value(value: object, levels: int) -> None:
    assert depths.is_deeper(msgspec.json.encode(value), levels) == (depth_of(value) > levels)


@given(st.binary(max_size=200) | st.text(alphabet='[]{}"\\a').map(str.encode), st.integers(0, 5))
def test_any_bytes_are_told(value: bytes, levels: int) -> None:
    assert depths.is_deeper(value, levels) in {True, False}


@pytest.mark.parametrize(
    "value",
    [b"[" * 2_000_000, b"[]" * 1_000_000, b'"\\' * 1_000_000, b'{"a":' * 400_000, b'[["' * 600_000],
    ids=["open", "flat", "quotes", "objects", "mixed"],
)
def test_two_megabytes_of_brackets_or_quotes_are_told_at_once(value: bytes) -> None:
    # The limit on a test's duration holds here; a quadratic search would take hours.
    assert depths.is_deeper(value, 64) == (value[:2] != b"[]" and value[:1] != b'"')
