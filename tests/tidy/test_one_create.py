"""One create through the Kubernetes API runs few functions in few files, so that a reader can follow it."""

import asyncio
import itertools
from pathlib import Path
from typing import Final

import pytest

from tests.tidy import one_create, trees, walks

FILES_MAX: Final = 40
FUNCTIONS_MAX: Final = 200
_LOG: Final = trees.ROOT / "engine/log"


@pytest.fixture(scope="module")
def functions() -> set[tuple[Path, str]]:
    return asyncio.run(one_create.functions())


def test_one_create_runs_few_functions_in_few_files(functions: set[tuple[Path, str]]) -> None:
    files = {trees.name_of(path) for path, _ in functions}
    assert len(files) <= FILES_MAX, sorted(files)
    assert len(functions) <= FUNCTIONS_MAX


def test_first_walk_leads_through_files_that_a_create_runs(functions: set[tuple[Path, str]]) -> None:
    files = {path for path, _ in functions}
    walk = [path for path, _ in walks.steps()]
    until_log = list(itertools.takewhile(lambda path: not path.is_relative_to(_LOG), walk))
    assert until_log
    assert not [trees.name_of(path) for path in until_log if path not in files]
