"""Import libraries without their optional dependencies, which would take most of a command's start time."""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Absent(MetaPathFinder):
    """Import finder that refuses some modules and leaves all others to the next finder."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        del path, target
        if fullname in self._names:
            raise ModuleNotFoundError(f"{fullname} is left out", name=fullname)
        return None


@contextmanager
def without(*names: str) -> Generator[None]:
    """Make imports of these modules fail as if they were not installed, except of modules that are loaded already."""
    finder = _Absent(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
