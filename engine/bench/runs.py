"""Figures, progress and the temporary directory of a benchmark."""

import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

WAIT_S: Final = 600
"""Seconds to wait for an effect before the benchmark fails."""

Figures: TypeAlias = dict[str, float | str | Mapping[str, float] | None]
"""Figures by name. ``baseline`` is a text about the baseline; ``reference`` has Karmada's figures by name."""

Progress = Callable[[str], None]


@contextmanager
def directory() -> Generator[Path]:
    """Make a directory, and remove it after the block."""
    with tempfile.TemporaryDirectory(prefix="reballast-bench-", ignore_cleanup_errors=True) as path:
        yield Path(path)
