"""Sizes and repetitions of the shipped packages: what a redesign should make smaller."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.tidy import trees

PACKAGES: Final = ("engine", "events", "projections")
LONGEST: Final = 5
_UNTYPED: Final = frozenset({"Json", "object", "Any"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def sources() -> dict[str, ast.Module]:
    """Return the syntax tree of each shipped module by its dotted name."""
    return {name: trees.tree(path) for name, path in _modules().items()}


def lines() -> int:
    """Return the number of lines of all shipped modules."""
    return sum(len(path.read_text().splitlines()) for path in _paths())


def longest_files() -> list[tuple[int, str]]:
    """Return the longest modules, with their numbers of lines."""
    counted = [(len(path.read_text().splitlines()), trees.name_of(path)) for path in _paths()]
    return sorted(counted, reverse=True)[:LONGEST]


def longest_functions() -> list[tuple[int, str]]:
    """Return the longest functions, with their numbers of lines."""
    counted = [
        ((function.end_lineno or function.lineno) - function.lineno + 1, f"{name}.{function.name}")
        for name, function in _functions()
    ]
    return sorted(counted, reverse=True)[:LONGEST]


def untyped_signatures() -> tuple[int, int]:
    """Return the number of functions that take or return untyped JSON, and the number of all functions."""
    functions = [function for _, function in _functions()]
    return sum(_is_untyped(function) for function in functions), len(functions)


def repeated_constants() -> dict[str, list[str]]:
    """Return the constants that several modules define with the same name and literal value."""
    modules_by_constant: dict[str, list[str]] = defaultdict(list)
    for module, tree in sources().items():
        for node in tree.body:
            match node:
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value)) if (
                    name.isupper()
                ):
                    modules_by_constant[f"{name.lstrip('_')} = {value!r}"].append(module)
                case _:
                    continue
    return {
        constant: modules for constant, modules in sorted(modules_by_constant.items()) if len(modules) > 1
    }


def cycles() -> list[list[str]]:
    """Return the cycles of modules that import each other, type-only imports included."""
    graph = {name: sorted(_imported(name, path)) for name, path in _modules().items()}
    return [sorted(group) for group in _components(graph) if len(group) > 1]


def _paths() -> list[Path]:
    return [path for path in trees.modules() if trees.name_of(path).split("/")[0] in PACKAGES]


@cache
def _modules() -> dict[str, Path]:
    """Return the file of each shipped module by its dotted name."""
    return {_dotted(trees.name_of(path)): path for path in _paths()}


def _dotted(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _functions() -> Iterator[tuple[str, Function]]:
    for name, path in _modules().items():
        for node in trees.nodes(path, ast.FunctionDef, ast.AsyncFunctionDef):
            yield name, node


def _is_untyped(function: Function) -> bool:
    arguments = function.args
    annotations = [
        argument.annotation for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    ]
    names = {
        node.id
        for annotation in (*annotations, function.returns)
        if annotation is not None
        for node in ast.walk(annotation)
        if isinstance(node, ast.Name)
    }
    return not _UNTYPED.isdisjoint(names)


def _imported(module: str, path: Path) -> set[str]:
    names = {alias.name for node in trees.nodes(path, ast.Import) for alias in node.names}
    for node in trees.nodes(path, ast.ImportFrom):
        if node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return (names & _modules().keys()) - {module}


def _components(graph: dict[str, list[str]]) -> list[list[str]]:
    """Strongly connected components (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            components.append(stack[at:])
            del stack[at:]

    for name in graph:
        if name not in index:
            visit(name)
    return components
