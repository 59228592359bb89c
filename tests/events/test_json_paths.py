"""The paths of printer columns."""

import pytest

from events import json_paths

VALUE = {
    "spec": {"replicas": 3, "a.b": "dotted", "list": [{"kind": "A"}, {"kind": "B"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Sad", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
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
def test_paths(path: str, found: list[object]) -> None:
    assert json_paths.found(VALUE, path) == found
