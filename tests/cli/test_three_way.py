"""Merge patches of ``apply`` and ``edit``: what holds of every one of them."""

from hypothesis import given
from hypothesis import strategies as st

from engine.cli import three_way
from engine.kubeapi.patching import patches
from events.validation.schema import as_object

Json = dict[str, object]

SCALARS = (
    st.booleans() | st.integers(-5, 5) | st.text("abc", max_size=2) | st.lists(st.integers(0, 3), max_size=3)
)
OBJECTS = st.recursive(
    st.dictionaries(st.text("abc", min_size=1, max_size=1), SCALARS, max_size=3),
    lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=1), inner | SCALARS, max_size=3),
    max_leaves=10,
)


def patched(target: Json, patch: Json) -> Json:
    """The object after the patch, as the server applies it."""
    return as_object(patches.merge_patched(target, patch)) or {}


def applied(spec: Json, live: Json | None) -> Json:
    """The object after an apply of one with this spec."""
    wanted = three_way.with_memory({"metadata": {"name": "x"}, "spec": spec})
    return (
        wanted if live is None else patched(live, three_way.patch(three_way.last_applied(live), wanted, live))
    )


@given(OBJECTS, OBJECTS)
def test_the_difference_of_two_objects_leads_from_one_to_the_other(old: Json, new: Json) -> None:
    assert patched(old, three_way.difference(old, new)) == new


@given(OBJECTS, OBJECTS)
def test_what_is_applied_holds_then_and_applied_again_changes_nothing(wanted: Json, live: Json) -> None:
    once = applied(wanted, {"metadata": {"name": "x"}, "spec": live})

    spec = as_object(once["spec"]) or {}
    assert three_way.patch({}, wanted, spec) == {}
    assert applied(wanted, once) == once


@given(OBJECTS, OBJECTS, OBJECTS)
def test_what_was_applied_and_is_left_out_goes_and_what_others_set_stays(
    first: Json, second: Json, others: Json
) -> None:
    live = applied(first, None)
    live = {**live, "spec": patched(as_object(live["spec"]) or {}, others)}

    found = as_object(applied(second, live)["spec"]) or {}

    for name in first.keys() - second.keys():
        assert name not in found
    for name in others.keys() - first.keys() - second.keys():
        assert found[name] == others[name]


def test_an_object_too_large_to_remember_has_no_annotation() -> None:
    large: Json = {"metadata": {"name": "x"}, "data": {"a": "x" * 300_000}}

    assert three_way.with_memory(large) == large
    assert three_way.last_applied(large) == {}


def test_the_annotation_is_measured_in_bytes() -> None:
    large: Json = {"metadata": {"name": "x"}, "data": {"a": "é" * 150_000}}
    assert three_way.with_memory(large) == large


@given(st.text())
def test_an_annotation_that_somebody_broke_is_no_memory(text: str) -> None:
    live: Json = {"metadata": {"annotations": {three_way.LAST_APPLIED: text}}}

    assert isinstance(three_way.last_applied(live), dict)
