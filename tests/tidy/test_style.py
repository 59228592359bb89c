"""Sizes, docstrings, file locations and words; the limits here are only tightened."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.tidy import commits, language, measures, trees

FUNCTION_LINES_MAX: Final = 60
FILE_LINES_MAX: Final = 400
UNTYPED_PER_MILLE_MAX: Final = 110
"""Signatures with JSON of no known shape, of a thousand; lower it as they get types."""

TOP_LEVEL: Final = frozenset(
    {
        ".ci",
        ".editorconfig",
        ".gitattributes",
        ".github",
        ".gitignore",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "compose",
        "engine",
        "events",
        "projections",
        "pyproject.toml",
        "requirements.lock",
        "tests",
    }
)

# Written with character classes of one letter, so that this file does not match itself.
_MACHINES: Final = re.compile(
    r"/wor[k]/|/hom[e]/\w|/User[s]/\w|/roo[t]/|/tmp/[b]riefs|\.\./[s]hared|\.interna[l]\b"
)
_UNFINISHED: Final = re.compile(r"\b(?:TOD[O]|FIXM[E]|XX[X])\b")


@pytest.fixture(scope="module", autouse=True)
def _all_is_read() -> None:
    """Find the private words before the first test, so that it does not count as test time."""
    language.private_words()


def _functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in trees.nodes(path, ast.FunctionDef, ast.AsyncFunctionDef):
        yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def _texts() -> Iterator[tuple[Path, str]]:
    for path in trees.files():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # an archive or an image


def _lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{trees.name_of(path)}:{number}: {line.strip()[:120]}"
        for path, text in _texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_functions_are_short() -> None:
    too_long = [
        f"{trees.name_of(path)}: {name} has {lines} lines"
        for path in trees.modules()
        for name, lines in _functions(path)
        if lines > FUNCTION_LINES_MAX
    ]
    assert not too_long, f"split functions of more than {FUNCTION_LINES_MAX} lines"


def test_files_are_short() -> None:
    counts = {path: len(path.read_text().splitlines()) for path in trees.modules()}
    too_long = [f"{trees.name_of(path)}: {n} lines" for path, n in counts.items() if n > FILE_LINES_MAX]
    assert not too_long, f"move a part of files of more than {FILE_LINES_MAX} lines to another module"


def test_few_signatures_take_or_return_untyped_json() -> None:
    untyped, functions = measures.untyped_signatures()
    assert untyped * 1_000 <= UNTYPED_PER_MILLE_MAX * functions, (
        f"{untyped} of {functions}; use structs or TypedDicts in new signatures, not Json"
    )


def test_no_modules_import_each_other() -> None:
    assert measures.cycles() == [], "move what both modules need to a third one"


def test_every_module_has_a_docstring() -> None:
    silent = [trees.name_of(path) for path in trees.modules() if not ast.get_docstring(trees.tree(path))]
    assert not silent, "add a docstring at the beginning of the module"


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in trees.modules()}
    incomplete = [trees.name_of(folder) for folder in folders if not (folder / "__init__.py").exists()]
    assert not incomplete, "add an __init__.py with a docstring"


def test_top_level_contains_only_known_entries() -> None:
    unknown = sorted(set(trees.entries()) - TOP_LEVEL)
    assert not unknown, "move them into a folder; a new folder at the top level needs an entry in TOP_LEVEL"


def test_no_file_names_a_machine_or_an_outside_path() -> None:
    assert not _lines_with(_MACHINES), "write paths relative to the repository, or example names"


def test_no_file_has_unfinished_marks() -> None:
    assert not _lines_with(_UNFINISHED), "finish the work, or describe the limit"


def test_commit_subjects_are_checked() -> None:
    assert commits.faults(["deciders: drop offers once a binding may not preempt"]) == []
    wrong = ["Fix it", "deciders: Drop offers", "deciders: drop offers.", f"log: {'x' * 70}"]
    assert len(commits.faults(wrong)) == len(wrong)


def test_docstrings_and_comments_use_the_terms_of_the_contributor_guide() -> None:
    assert not language.private_words(), "see the table under 'Style' in CONTRIBUTING.md for other words"


def test_names_say_what_they_hold_or_return() -> None:
    unclear = [line for path in trees.modules() for line in language.unclear_names(path)]
    assert not unclear, "name a variable for its content and a function for its result; see CONTRIBUTING.md"
