"""Markdown files: their links lead somewhere, and the walks through the code name what exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy import trees, walks

_LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)[^)]*\)")
_MODULES = re.compile(r"^\| modules? ", re.MULTILINE)
_STEPS_MIN = 20


def documents() -> Iterator[Path]:
    return (path for path in trees.files() if path.suffix == ".md")


def test_links_lead_to_files() -> None:
    broken = [
        f"{trees.name_of(path)}: {target}"
        for path in documents()
        for target in _LINK.findall(path.read_text(encoding="utf-8"))
        if not (path.parent / target).exists()
    ]
    assert not broken, "correct the links"


def test_tables_of_modules_name_each_module_of_their_folder() -> None:
    tables = {path: path.read_text(encoding="utf-8") for path in documents() if path.name == "README.md"}
    missing = [
        f"{trees.name_of(path)}: {module.stem}"
        for path, text in tables.items()
        if _MODULES.search(text)
        for module in path.parent.glob("[!_]*.py")
        if f"`{module.stem}`" not in text
    ]
    assert not missing, "add a row for each of these modules to the table in the README"


def test_walks_name_functions_and_classes_of_their_files() -> None:
    steps = list(walks.steps())
    assert len(steps) > _STEPS_MIN
    missing = [
        f"{trees.name_of(path)}: {name}"
        for path, names in steps
        for name in re.findall(r"`(\w+)`", names)
        if name not in defined(path)
    ]
    assert not missing, "correct the walks in engine/README.md"


def defined(path: Path) -> set[str]:
    """Return the functions and classes of a module."""
    body = trees.tree(path.resolve()).body
    return {
        node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
