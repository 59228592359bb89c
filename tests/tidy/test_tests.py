"""Rules for the modules of tests."""

import ast
from collections.abc import Iterator

from tests.tidy import trees


def test_no_module_imports_a_module_of_tests() -> None:
    """Code that tests share belongs in a helper module, which pytest does not collect."""
    imported = [
        f"{trees.name_of(path)} imports {name}"
        for path in trees.modules()
        for name in _imports(trees.tree(path))
        if any(part.startswith("test_") for part in name.split("."))
    ]
    assert not imported


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names):
                yield from (f"{module}.{alias.name}" for alias in names)
            case _:
                pass
