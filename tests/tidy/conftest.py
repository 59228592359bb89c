"""The syntax trees of all modules, parsed and walked once for all tidy tests."""

import gc

import pytest

from tests.tidy import trees


@pytest.fixture(scope="session", autouse=True)
def _parsed() -> None:
    """Parse all modules before the first test, so that none of them pays for it alone.

    The trees are millions of objects that last for the whole run: a garbage collection that visits them takes a second.
    """
    gc.disable()
    for path in trees.modules():
        trees.nodes(path)
    gc.freeze()
    gc.enable()
