"""Private words and openings that the contributor guide replaces, counted in docstrings and comments."""

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
    r"|who asks|goes along|set aside|news|(?-i:(?<!there )is none))\b",
    re.IGNORECASE,
)
"""Words that mean something else, or nothing, to a reader of Kubernetes' and Kafka's documentation."""

OPENINGS: Final = re.compile(r"^(?:What|Who|Whoever|Where|Whose|That which|The same|As above|See ``)\b")
"""A docstring begins with a noun or a verb, not with a clause about one."""

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


def comments(path: Path) -> Iterator[str]:
    """Yield all comments of a module, except those for tools."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(?:noqa|pyright|type):?", token.string):
            yield token.string.lstrip("# ")


@cache
def counts() -> Counter[str]:
    """Count each private word and each opening in the shipped packages."""
    found: Counter[str] = Counter()
    for path in trees.modules():
        if trees.name_of(path).startswith("tests/"):
            continue
        for text in docstrings(path):
            found.update(word.lower() for word in PRIVATE.findall(text))
            if match := OPENINGS.match(text.strip()):
                found[f"{match[0]} ..."] += 1
        for text in comments(path):
            found.update(word.lower() for word in PRIVATE.findall(text))
    return found
