"""Detection of duplicate names in JSON text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.requests.body_checks import repeated_fields


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('{"a":1,"a":1}', ["a"]),
        ('{"spec":{"x":[{"y":1},{"y":1,"z":2,"y":3}]},"spec2":0}', ["spec.x[1].y"]),
        ('{"a":{"b":1},"a":{"c":{},"c":{}}}', ["a", "a.c"]),
        ('{"a":":","b":"\\":\\"","c":"{\\"a\\":1,\\"a\\":2}"}', []),
        ("[]", []),
    ],
)
def test_duplicate_name_is_reported_by_its_path(text: str, paths: list[str]) -> None:
    assert repeated_fields(text.encode(), json.loads(text)) == paths


_VALUES = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(_VALUES)
def test_serialised_value_has_no_duplicates(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert repeated_fields(text.encode("utf-8", "surrogatepass"), value) == []


def test_duplicate_among_many_names_is_found_in_linear_time() -> None:
    names = [f"n{index}" for index in range(60_000)]
    text = b"{" + ",".join(f'"{name}":1' for name in [*names, "n7"]).encode() + b"}"
    assert repeated_fields(text, dict.fromkeys(names, 1)) == ["n7"]


def test_duplicates_are_listed_up_to_a_number() -> None:
    text = "{" + ",".join(f'"n{index}":1,"n{index}":1' for index in range(150)) + "}"
    assert repeated_fields(text.encode(), json.loads(text)) == [f"n{index}" for index in range(100)]
