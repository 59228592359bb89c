"""The files of the repository, as the tidy tests see them."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar, cast

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("engine", "events", "projections", "tests")
MADE_BY_TOOLS: Final = frozenset(
    {
        ".git",
        ".hypothesis",
        ".import_linter_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".venv",
        "__pycache__",
        "build",
        "dist",
    }
)


Node = TypeVar("Node", bound=ast.AST)


@cache
def entries() -> tuple[str, ...]:
    """Return the top-level entries, without those created by tools."""
    return tuple(sorted(path.name for path in ROOT.iterdir() if path.name not in MADE_BY_TOOLS))


@cache
def files() -> tuple[Path, ...]:
    """Return every file of the repository, without those created by tools."""
    tops = [ROOT / name for name in entries()]
    # The directories made by tools at the top are left out before the search: .venv has thousands of files.
    below = chain.from_iterable([top, *top.rglob("*")] for top in tops)
    return tuple(
        path
        for path in sorted(below)
        if MADE_BY_TOOLS.isdisjoint(path.relative_to(ROOT).parts) and path.is_file()
    )


@cache
def modules() -> tuple[Path, ...]:
    """Return every Python file of the repository."""
    return tuple(path for path in files() if path.suffix == ".py")


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a module; parsed once for all tests."""
    return ast.parse(path.read_text(), filename=str(path))


def nodes(path: Path, *types: type[Node]) -> Iterator[Node]:
    """Yield the nodes of these types in a module, type by type."""
    index = _nodes_by_type(path)
    return chain.from_iterable(cast("list[Node]", index.get(kind, [])) for kind in types)


@cache
def _nodes_by_type(path: Path) -> dict[type[ast.AST], list[ast.AST]]:
    """Return the nodes of a module, without contexts; a walk takes longer than to parse, so there is only one."""
    index: defaultdict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    left: list[ast.AST] = [tree(path)]
    while left:
        node = left.pop()
        index[type(node)].append(node)
        for name in node._fields:
            value: object = getattr(node, name, None)
            if isinstance(value, list):
                left += (item for item in cast("list[object]", value) if isinstance(item, ast.AST))
            elif isinstance(value, ast.AST) and name != "ctx":
                left.append(value)
    return index


@cache
def name_of(path: Path) -> str:
    """Return the path relative to the repository root."""
    return path.relative_to(ROOT).as_posix()
