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
    """What stands at the top, without what tools make there."""
    return tuple(sorted(path.name for path in ROOT.iterdir() if path.name not in MADE_BY_TOOLS))


@cache
def files() -> tuple[Path, ...]:
    """Every file of the repository, without what tools make."""
    return tuple(
        path
        for path in sorted(ROOT.rglob("*"))
        if MADE_BY_TOOLS.isdisjoint(path.relative_to(ROOT).parts) and path.is_file()
    )


@cache
def modules() -> tuple[Path, ...]:
    """Every Python file of ours."""
    return tuple(path for path in files() if path.suffix == ".py")


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a module; parsed once for all tests."""
    return ast.parse(path.read_text(), filename=str(path))


def name_of(path: Path) -> str:
    """The path as people write it, from the top of the repository."""
    return path.relative_to(ROOT).as_posix()
