"""A decider is a generator: calling it without ``yield from`` would silently decide nothing."""

import ast
from pathlib import Path
from typing import Final

from tests.tidy import trees

DECIDERS: Final = trees.ROOT / "engine" / "deciders"
COLLECTING: Final = "take_all"
"""Method of the collector that runs a decider to its end."""


def test_each_call_of_a_decider_takes_its_outputs() -> None:
    deciders = {(path.stem, name) for path in _modules() for name in _deciders(path)}

    assert deciders
    unused = [call for path in _modules() for call in _unused_calls(path, deciders)]
    assert not unused, "write `yield from` before the call"


def _modules() -> list[Path]:
    return sorted(DECIDERS.glob("*.py"))


def _deciders(path: Path) -> list[str]:
    return [
        node.name
        for node in trees.nodes(path, ast.FunctionDef)
        if node.returns and "Outputs[" in ast.unparse(node.returns)
    ]


def _unused_calls(path: Path, deciders: set[tuple[str, str]]) -> list[str]:
    taken = {
        id(value)
        for node in trees.nodes(path, ast.YieldFrom, ast.Call)
        for value in (
            [node.value]
            if isinstance(node, ast.YieldFrom)
            else node.args
            if _name(node, path)[1] == COLLECTING
            else []
        )
    }
    return [
        f"{path.name}:{node.lineno}"
        for node in trees.nodes(path, ast.Call)
        if _name(node, path) in deciders and id(node) not in taken
    ]


def _name(call: ast.Call, path: Path) -> tuple[str, str]:
    """Return the module and name of the function that is called."""
    match call.func:
        case ast.Name(id=name):
            return path.stem, name
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return path.stem if owner == "self" else owner, name
        case _:
            return path.stem, ""
