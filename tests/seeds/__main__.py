"""Rewrite the table of steps in README.md: ``python -m tests.seeds``."""

import importlib
from pathlib import Path
from typing import Final

from tests.seeds import steps

README: Final = Path(__file__).parent / "README.md"
_MARK: Final = "<!-- steps -->\n"


def with_table(text: str) -> str:
    """Return the text with an up-to-date table after its mark."""
    for path in sorted(README.parent.glob("test_*.py")):
        importlib.import_module(f"tests.seeds.{path.stem}")
    return f"{text.partition(_MARK)[0]}{_MARK}\n{steps.table().rstrip()}\n"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
