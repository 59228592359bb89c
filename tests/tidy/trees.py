"""The files of the repository, as the tidy tests see them."""

import ast
from functools import cache
from pathlib import Path
from typing import Final

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


@cache
def entries() -> tuple[str, ...]:
    """Return the top-level entries, without those created by tools."""
    return tuple(sorted(path.name for path in ROOT.iterdir() if path.name not in MADE_BY_TOOLS))


@cache
def files() -> tuple[Path, ...]:
    """Return every file of the repository, without those created by tools."""
    return tuple(
        path
        for path in sorted(ROOT.rglob("*"))
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


def name_of(path: Path) -> str:
    """Return the path relative to the repository root."""
    return path.relative_to(ROOT).as_posix()
