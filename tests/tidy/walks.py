"""The walks through the code in the README of the engine."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy import trees

_STEP = re.compile(r"^\| \[[^\]]+\.py\]\(([^)]+)\) \| ([^|]*) \|")
_ENGINE = trees.ROOT / "engine/README.md"


def steps() -> Iterator[tuple[Path, str]]:
    """Yield the file of each step of the walks through the engine, and where to look in it."""
    for line in _ENGINE.read_text(encoding="utf-8").splitlines():
        if step := _STEP.match(line):
            yield (_ENGINE.parent / step[1]).resolve(), step[2]
