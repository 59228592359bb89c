"""Nesting depth, counted over bytes and compared with the depth of the parsed value."""

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
def test_depth_of_bytes_equals_depth_of_the_value(value: object, levels: int) -> None:
    assert depths.is_deeper(msgspec.json.encode(value), levels) == (depth_of(value) > levels)


@given(st.binary(max_size=200) | st.text(alphabet='[]{}"\\a').map(str.encode), st.integers(0, 5))
def test_depth_of_any_bytes_is_computed(value: bytes, levels: int) -> None:
    assert depths.is_deeper(value, levels) in {True, False}


@pytest.mark.parametrize(
    "value",
    [b"[" * 2_000_000, b"[]" * 1_000_000, b'"\\' * 1_000_000, b'{"a":' * 400_000, b'[["' * 600_000],
    ids=["open", "flat", "quotes", "objects", "mixed"],
)
def test_depth_of_two_megabytes_of_brackets_is_computed_in_linear_time(value: bytes) -> None:
    # The time limit of the test suffices; a quadratic search would take hours.
    assert depths.is_deeper(value, 64) == (value[:2] != b"[]" and value[:1] != b'"')
