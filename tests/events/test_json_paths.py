"""JSON paths in kubectl's syntax: for printer columns, and for values in a status."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import json_paths

VALUE = {
    "spec": {"replicas": 3, "a.b": "dotted", "list": [{"kind": "A"}, {"kind": "B"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Sad", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".spec.replicas", [3]),
        ("spec.replicas", [3]),
        ("{.spec.replicas}", [3]),
        ("$.spec.replicas", [3]),
        (r".spec.a\.b", ["dotted"]),
        (".spec['a.b']", ["dotted"]),
        (".spec.list[0].kind", ["A"]),
        (".spec.list[-1].kind", ["B"]),
        (".spec.list[7].kind", []),
        (".spec.list[*].kind", ["A", "B"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'Sad')].status", ["False"]),
        ('.status.conditions[?(@.type=="Other")].status', []),
        (".spec..replicas", []),
        (".spec.list[(@.length-1)]", []),
        ("x" * 2000, []),
    ],
)
def test_paths_select_values(path: str, values: list[object]) -> None:
    assert json_paths.values_at(VALUE, path) == values


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("{ .spec.replicas }", "3"),
        ("{.spec['a.b']}", "dotted"),
        (".spec.list[*].kind", "A B"),
        (".spec.list[0]", '{"kind":"A"}'),
        (".spec.nothing", None),
    ],
)
def test_selected_values_are_printed_as_by_kubectl(path: str, text: str | None) -> None:
    assert json_paths.text(VALUE, path) == text


def test_null_selects_nothing_and_booleans_become_text() -> None:
    assert json_paths.text({"a": None, "b": True}, ".a") is None
    assert json_paths.text({"a": None, "b": True}, ".b") == "true"


@pytest.mark.parametrize(
    "path", ["", "{}", "{.}", ".a..b", ".a[", ".a[1:2]", "{.a}{.b}", "x {.a}", ".a.*", ".a['b", "a" * 2000]
)
def test_unsupported_paths_are_reported(path: str) -> None:
    assert not json_paths.is_readable(path)
    assert json_paths.values_at({"a": {"b": [1]}}, path) == []


_NAMES = st.text(min_size=1, max_size=8)


@given(st.lists(_NAMES, min_size=1, max_size=4), st.integers() | st.text(max_size=8))
def test_quoted_names_select_any_field(names: list[str], value: int | str) -> None:
    nested: object = value
    path = ""
    for name in reversed(names):
        nested = {name: nested, f"{name}x": "other"}
        escaped = "".join(f"\\{character}" for character in name)
        path = f"['{escaped}']{path}"
    assert json_paths.values_at(nested, path) == [value]
    assert json_paths.names(path) == tuple(names)


@given(st.text(max_size=40), st.dictionaries(_NAMES, st.integers() | st.lists(st.integers(), max_size=3)))
def test_no_path_and_no_value_raises(path: str, value: dict[str, object]) -> None:
    json_paths.text(value, path)
    json_paths.names(path)
    assert json_paths.is_readable(path) or json_paths.values_at(value, path) == []
