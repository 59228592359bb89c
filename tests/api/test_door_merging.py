"""Merging: patches by the examples of RFC 7396, and what holds of every patch and every apply."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.gateway import door_merging as merging
from events.forms_schema import as_object

Json = dict[str, object]

SCALARS = (
    st.booleans() | st.integers(-5, 5) | st.text("abc", max_size=2) | st.lists(st.integers(0, 3), max_size=3)
)
OBJECTS = st.recursive(
    st.dictionaries(st.text("abc", min_size=1, max_size=1), SCALARS, max_size=3),
    lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=1), inner | SCALARS, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_follow_the_rfc(target: Json, patch: Json, result: Json) -> None:
    assert merging.patched(target, patch) == result


@given(OBJECTS, OBJECTS)
def test_the_difference_of_two_objects_leads_from_one_to_the_other(old: Json, new: Json) -> None:
    assert merging.patched(old, merging.difference(old, new)) == new


@given(OBJECTS)
def test_an_object_differs_from_itself_in_nothing(value: Json) -> None:
    assert merging.difference(value, value) == {}


@given(OBJECTS, OBJECTS)
def test_what_is_applied_stands_then_and_applied_again_changes_nothing(wanted: Json, live: Json) -> None:
    once = merging.applied(_named(wanted), _named(live))

    found = as_object(once["spec"]) or {}
    assert merging.three_way({}, wanted, found) == found
    assert merging.applied(_named(wanted), once) == once


def _named(spec: Json) -> Json:
    """An object with this spec."""
    return {"metadata": {"name": "x"}, "spec": spec}


@given(OBJECTS, OBJECTS, OBJECTS)
def test_what_was_applied_and_is_left_out_goes_and_what_others_set_stays(
    first: Json, second: Json, others: Json
) -> None:
    live = merging.applied(_named(first), None)
    live = {**live, "spec": merging.patched(as_object(live["spec"]) or {}, others)}

    found = as_object(merging.applied(_named(second), live)["spec"]) or {}

    for name in first.keys() - second.keys():
        assert name not in found
    for name in others.keys() - first.keys() - second.keys():
        assert found[name] == others[name]


def test_an_object_too_large_to_remember_is_replaced_whole() -> None:
    large: Json = {"metadata": {"name": "x"}, "data": {"a": "x" * 300_000}}

    found = merging.applied(large, {"metadata": {"name": "x"}, "data": {"b": "y"}})

    assert found == large
