"""Rules for the modules of tests."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.tidy import trees


def test_no_module_imports_a_module_of_tests() -> None:
    """Code that tests share belongs in a helper module, which pytest does not collect."""
    imported = [
        f"{trees.name_of(path)} imports {name}"
        for path in trees.modules()
        for name in _imports(path)
        if any(part.startswith("test_") for part in name.split("."))
    ]
    assert not imported, "move the shared code to a module without the prefix test_"


def _imports(path: Path) -> Iterator[str]:
    for node in trees.nodes(path, ast.Import):
        yield from (alias.name for alias in node.names)
    for node in trees.nodes(path, ast.ImportFrom):
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
