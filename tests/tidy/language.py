"""Private words and openings that the contributor guide replaces: in docstrings, comments, texts and READMEs."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tests.tidy import trees

PRIVATE: Final = re.compile(
    r"\b(?:anew|any more|all the same|whoever|nobody|somebody|purse|shelf|shelves|formers|lacking|told|tells|stands?"
    r"|who asks|goes along|set aside|news|(?-i:(?<!there )is none)|go(?:es|ing) on|go(?:es)? too|put right|by chance"
    r"|hence|thus|there(?:by|of|in)|happenings?|owe[ds]?|untold|g[ia]ves? back|falls? silent|comes? true|doors?|hands"
    r"|in (?:its|their) words|takes? (?:it|them) (?:as|for)|learns? of|hears?|in vain|spares?|the like of)\b",
    re.IGNORECASE,
)
"""Words that mean something else, or nothing, to a reader of Kubernetes' and Kafka's documentation."""

OPENINGS: Final = re.compile(
    r"^(?:What|Who|Whoever|Where|Whose|That which|The same|As above|See ``"
    r"|Have|That|Those|This|These|It|So|Also|Once|Nothing to)\b"
)
"""A docstring begins with a noun or a verb, not with a clause about one."""

NAMES: Final = frozenset(
    {"about", "asked", "each", "found", "given", "gone", "held", "here", "home", "it", "its", "mine", "one"}
    | {"ours", "place", "places", "said", "some", "there", "told", "wanted", "what", "who"}
)
"""Variables that tell nothing about their content: pronouns, adverbs, and participles without a noun."""

_PARTICIPLES: Final = frozenset({"kept", "known", "made", "seen"})
"""Names that are unclear for functions and classes only."""

_DOCUMENTED_IN: Final = ("engine", "events", "projections", "compose")
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(path: Path) -> Iterator[str]:
    """Yield all docstrings of a module, including those of attributes."""
    for node in ast.walk(trees.tree(path)):
        body: object = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for statement in body:  # pyright: ignore[reportUnknownVariableType]
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                yield statement.value.value


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a module: strings of several words.

    ``events/validation`` is left out: its texts are recorded in rejections, and recorded bytes must not change.
    """
    if trees.name_of(path).startswith("events/validation/"):
        return
    for node in ast.walk(trees.tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


def comments(path: Path) -> Iterator[str]:
    """Yield the comments of a module that may have private words, except those for tools.

    To divide all modules into tokens takes seconds; few have such a word in a line with a comment.
    """
    source = path.read_text()
    if not any("#" in line and PRIVATE.search(line) for line in source.splitlines()):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(?:noqa|pyright|type):?", token.string):
            yield token.string.lstrip("# ")


def unclear_names(path: Path) -> Iterator[str]:
    """Yield the lines of a module that bind an unclear name to a variable, parameter, function or class, and the name.

    Fields of classes are left out: many are recorded.
    """
    nodes = list(ast.walk(trees.tree(path)))
    fields = {
        id(field.target)
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    }
    is_shipped = not trees.name_of(path).startswith("tests/")
    for node in nodes:
        if id(node) in fields:
            continue
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if is_shipped:
                if node.name.strip("_").lower() in NAMES | _PARTICIPLES:
                    yield f"{trees.name_of(path)}:{node.lineno}: {node.name}"
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name in NAMES:
                yield f"{trees.name_of(path)}:{node.lineno}: {name}"
            case ast.MatchAs(name=str(name)) if name in NAMES:
                yield f"{trees.name_of(path)}:{node.lineno}: {name}"
            case _:
                continue


@cache
def counts() -> Counter[str]:
    """Count each word in ``PRIVATE`` and each opening in ``OPENINGS``, in the shipped packages and the README files."""
    counted: Counter[str] = Counter()
    for path in trees.modules():
        if trees.name_of(path).startswith("tests/"):
            continue
        for text in docstrings(path):
            counted.update(word.lower() for word in PRIVATE.findall(text))
            if match := OPENINGS.match(text.strip()):
                counted[f"{match[0]} ..."] += 1
        for text in (*texts(path), *comments(path)):
            counted.update(word.lower() for word in PRIVATE.findall(text))
    for path in (
        trees.ROOT / "README.md",
        *(file for name in _DOCUMENTED_IN for file in (trees.ROOT / name).rglob("README.md")),
    ):
        counted.update(word.lower() for word in PRIVATE.findall(path.read_text()))
    return counted
