"""Where jars and class archives stay between runs, and how runs at the same time share them."""

import contextlib
import fcntl
import os
from collections.abc import Generator
from pathlib import Path
from typing import Final

import platformdirs

VARIABLE: Final = "REBALLAST_TEST_CACHE"
"""Names another directory, for machines whose home does not last."""


def directory() -> Path:
    """The cache's directory, which exists."""
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else platformdirs.user_cache_path("reballast-tests")
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def exclusive(name: str) -> Generator[None]:
    """Held by one process of the machine at a time; a process that dies lets go of it."""
    with (directory() / f"{name}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield
