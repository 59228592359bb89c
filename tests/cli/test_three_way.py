"""Properties of the merge patches of ``apply`` and ``edit``."""

from hypothesis import given
from hypothesis import strategies as st

from engine.cli import three_way
from engine.domain import marks
from engine.kubeapi.patching import patches
from events.json_values import Json, object_at
from events.kube_objects import KubeObject

SCALARS = (
    st.booleans() | st.integers(-5, 5) | st.text("abc", max_size=2) | st.lists(st.integers(0, 3), max_size=3)
)
OBJECTS = st.recursive(
    st.dictionaries(st.text("abc", min_size=1, max_size=1), SCALARS, max_size=3),
    lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=1), inner | SCALARS, max_size=3),
    max_leaves=10,
)


def patched(target: Json, patch: Json) -> Json:
    """Return the object after the patch, as the server applies it."""
    return object_at(patches.merge_patched(target, patch))


def applied(spec: Json, live: Json | None) -> Json:
    """Return the object after an apply with this spec."""
    desired = three_way.with_last_applied(KubeObject({"metadata": {"name": "x"}, "spec": spec})).document
    if live is None:
        return desired
    return patched(live, three_way.patch(three_way.last_applied(KubeObject(live)), desired, live))


@given(OBJECTS, OBJECTS)
def test_difference_transforms_one_object_into_the_other(old: Json, new: Json) -> None:
    assert patched(old, three_way.difference(old, new)) == new


@given(OBJECTS, OBJECTS)
def test_applied_fields_are_set_and_a_second_apply_changes_nothing(desired: Json, live: Json) -> None:
    once = applied(desired, {"metadata": {"name": "x"}, "spec": live})

    spec = object_at(once, "spec")
    assert three_way.patch({}, desired, spec) == {}
    assert applied(desired, once) == once


@given(OBJECTS, OBJECTS, OBJECTS)
def test_omitted_fields_are_removed_and_fields_of_others_kept(
    first: Json, second: Json, others: Json
) -> None:
    live = applied(first, None)
    live = {**live, "spec": patched(object_at(live, "spec"), others)}

    spec = object_at(applied(second, live), "spec")

    for name in first.keys() - second.keys():
        assert name not in spec
    for name in others.keys() - first.keys() - second.keys():
        assert spec[name] == others[name]


def test_object_too_large_to_remember_has_no_annotation() -> None:
    large = KubeObject({"metadata": {"name": "x"}, "data": {"a": "x" * 300_000}})

    assert three_way.with_last_applied(large) == large
    assert three_way.last_applied(large) == {}


def test_annotation_size_is_measured_in_bytes() -> None:
    large = KubeObject({"metadata": {"name": "x"}, "data": {"a": "é" * 150_000}})
    assert three_way.with_last_applied(large) == large


@given(st.text())
def test_malformed_annotation_is_ignored(text: str) -> None:
    live = KubeObject({"metadata": {"annotations": {marks.LAST_APPLIED: text}}})

    assert isinstance(three_way.last_applied(live), dict)
