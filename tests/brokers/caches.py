"""Cache of jars and class archives between test runs, shared by concurrent runs."""

import contextlib
import fcntl
import os
from collections.abc import Generator
from pathlib import Path
from typing import Final

import platformdirs

VARIABLE: Final = "REBALLAST_TEST_CACHE"
"""Environment variable with another cache directory, for machines with a temporary home directory."""


def directory() -> Path:
    """Return the cache directory; creates it if necessary."""
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else platformdirs.user_cache_path("reballast-tests")
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def exclusive(name: str) -> Generator[None]:
    """Hold a file lock of this machine; it is released even if the process dies."""
    with (directory() / f"{name}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield
