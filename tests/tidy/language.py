"""Private words and openings that the contributor guide replaces: in docstrings, comments, texts and READMEs."""

import ast
import io
import re
import tokenize
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

_DESCRIBING: Final = ("compose/compose.yaml", "compose/grafana/", "events/validation/kinds/")
"""Files with comments and descriptions for users, such as those of ``kubectl explain``."""

_NAMING: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Name, ast.arg, ast.MatchAs)
"""Nodes that may bind a name."""


def docstrings(path: Path) -> Iterator[str]:
    """Yield all docstrings of a module, including those of attributes."""
    for statement in trees.nodes(path, ast.Expr):
        if isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
            yield statement.value.value


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of a module: strings of several words.

    ``events/validation`` is left out: its texts are recorded in rejections, and recorded bytes must not change.
    """
    if trees.name_of(path).startswith("events/validation/"):
        return
    for node in trees.nodes(path, ast.Constant):
        if isinstance(node.value, str) and " " in node.value:
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
    fields = {
        id(field.target)
        for node in trees.nodes(path, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign)
    }
    is_shipped = not trees.name_of(path).startswith("tests/")
    for node in trees.nodes(path, *_NAMING):
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
def private_words() -> tuple[str, ...]:
    """Return each word in ``PRIVATE`` and each opening in ``OPENINGS`` that is used, after the name of its file.

    Tests are left out.
    """
    used: list[str] = []
    for path in trees.files():
        name = trees.name_of(path)
        if name.startswith("tests/"):
            continue
        words: list[str] = []
        if path.suffix == ".py":
            for text in docstrings(path):
                words += PRIVATE.findall(text)
                words += (f"{match[0]} ..." for match in [OPENINGS.match(text.strip())] if match)
            words += (word for text in (*texts(path), *comments(path)) for word in PRIVATE.findall(text))
        elif path.name == "README.md" or name.startswith(_DESCRIBING):
            words += PRIVATE.findall(path.read_text())
        used += (f"{name}: {word}" for word in words)
    return tuple(used)
