"""JSON patches and merge patches: the examples of their RFCs, and refusals."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.patching import patches
from events.json_values import Json

# RFC 7396, appendix A.
MERGES: list[tuple[object, object, object]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]

# RFC 6902, appendix A.
OPERATIONS: list[tuple[object, list[Json], object]] = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    (
        {"foo": ["bar", "baz"]},
        [{"op": "add", "path": "/foo/1", "value": "qux"}],
        {"foo": ["bar", "qux", "baz"]},
    ),
    ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
    ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
    (
        {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    ),
    (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    (
        {"baz": "qux", "foo": ["a", 2, "c"]},
        [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
        {"baz": "qux", "foo": ["a", 2, "c"]},
    ),
    ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["x"]}], {"foo": ["bar", ["x"]]}),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ({"a/b": 1}, [{"op": "replace", "path": "/a~1b", "value": 2}], {"a/b": 2}),
    ({"a": [{"b": [1, 2]}]}, [{"op": "remove", "path": "/a/0/b/-1"}], {"a": [{"b": [1]}]}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": [1]}], [1]),
    ({"a": 1}, [{"op": "remove", "path": ""}], None),
    ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
]

BROKEN: list[tuple[object, str]] = [
    ({}, "list of operations"),
    ([7], "operation 0: is not an object"),
    ([{"op": "add", "path": "/b"}], "add has no value"),
    ([{"op": "add", "path": "b", "value": 1}], "path is not a JSON pointer"),
    ([{"op": "remove", "path": "/b"}], "operation 0: there is no /b"),
    ([{"op": "replace", "path": "/a/2", "value": 1}], "'2' is not an index in a list of 2 items"),
    ([{"op": "test", "path": "/a/0", "value": True}], "is not the tested one"),
    ([{"op": "remove", "path": "/a/01"}], "'01' is not an index in a list of 2 items"),
    ([{"op": "add", "path": "/a/3", "value": 1}], "not an index in a list"),
    ([{"op": "remove", "path": "/a/-"}], "not an index in a list"),
    ([{"op": "add", "path": "/a/0/x", "value": 1}], "neither an object nor a list"),
    ([{"op": "move", "from": "/a", "path": "/a/0"}], "into itself"),
    ([{"op": "twist", "path": "/a"}], "not one of add"),
    ([{"op": "copy", "path": "/a/-", "from": "/a"}] * 64, "copies too much"),
    ([{"op": "remove", "path": ""}, {"op": "add", "path": "/b", "value": 1}], "operation 1: there is no"),
    ([{"op": "test", "path": "/a/0", "value": 1}] * 10_001, "at most 10000"),
]


@pytest.mark.parametrize(("value", "patch", "result"), MERGES)
def test_merge_patch_is_applied(value: object, patch: object, result: object) -> None:
    before = copy.deepcopy(value)
    assert patches.merge_patched(value, patch) == result
    assert value == before


@pytest.mark.parametrize(("value", "operations", "result"), OPERATIONS)
def test_json_patch_is_applied(value: object, operations: list[Json], result: object) -> None:
    before = copy.deepcopy(value)
    assert patches.json_patched(value, operations) == result
    assert value == before


@pytest.mark.parametrize(("operations", "words"), BROKEN)
def test_inapplicable_json_patch_is_refused(operations: object, words: str) -> None:
    with pytest.raises(patches.PatchError, match=words):
        patches.json_patched({"a": [1, 2]}, operations)


@pytest.mark.parametrize("sign", ["a", "é", "\U0001f980"])
def test_copies_are_limited_by_their_json_size(sign: str) -> None:
    text = sign * (1024 * 1024 // len(sign.encode()) - 2)
    copies = [{"op": "copy", "from": "/a", "path": f"/b{index}"} for index in range(3)]
    assert patches.json_patched({"a": text}, copies) == {"a": text, "b0": text, "b1": text, "b2": text}
    with pytest.raises(patches.PatchError, match="operation 2: copies too much"):
        patches.json_patched({"a": text + 3 * sign}, copies)


def test_only_api_patches_may_replace_a_missing_value() -> None:
    replace = [{"op": "replace", "path": "/b", "value": 1}]
    assert patches.json_patched({"a": 1}, replace) == {"a": 1, "b": 1}
    with pytest.raises(patches.PatchError, match="there is no /b"):
        patches.json_patch_in_place({"a": 1}, replace)


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "test", "path": "/b", "value": None}, {"a": [1, 2]}),
        ({"op": "add", "path": "/a/-1", "value": 3}, {"a": [1, 2, 3]}),
        ({"op": "add", "path": "/a/-3", "value": 3}, {"a": [3, 1, 2]}),
        ({"op": "remove", "path": "/a/-1"}, {"a": [1]}),
        ({"op": "replace", "path": "/a/-2", "value": 3}, {"a": [3, 2]}),
        ({"op": "test", "path": "/a/-1", "value": 2}, {"a": [1, 2]}),
        ({"op": "move", "from": "/a/-1", "path": "/a/-2"}, {"a": [2, 1]}),
        ({"op": "copy", "from": "/a/-1", "path": "/a/-1"}, {"a": [1, 2, 2]}),
    ],
)
def test_api_patches_test_for_absence_and_count_from_the_end(operation: Json, result: object) -> None:
    assert patches.json_patched({"a": [1, 2]}, [operation]) == result


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/b", "value": 1},
        {"op": "test", "path": "/b/c", "value": None},
        {"op": "test", "path": "/a/2", "value": None},
        {"op": "test", "path": "/a", "value": None},
        {"op": "add", "path": "/a/-4", "value": 3},
        {"op": "remove", "path": "/a/-3"},
    ],
)
def test_api_patch_outside_of_the_value_is_refused(operation: Json) -> None:
    with pytest.raises(patches.PatchError):
        patches.json_patched({"a": [1, 2]}, [operation])


def _objects(leaves: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    names = st.sampled_from("abc")
    return st.recursive(leaves, lambda below: st.dictionaries(names, below, max_size=3), max_leaves=8)


@given(_objects(st.integers()), _objects(st.none() | st.integers()))
def test_merge_patch_is_idempotent(value: object, patch: object) -> None:
    once = patches.merge_patched(value, patch)
    assert patches.merge_patched(once, patch) == once
