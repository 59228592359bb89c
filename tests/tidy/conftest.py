"""What all tidy tests share: the syntax tree of each module."""

import pytest

from tests.tidy import trees


@pytest.fixture(scope="session", autouse=True)
def _parsed() -> None:
    """Parse all modules before the first test, so that none of them pays for it alone."""
    for path in trees.modules():
        trees.tree(path)
