"""What holds for every test: no test is slow unawares, and nothing of ours blocks the event loop."""

import logging
import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import hypothesis
import pytest
import structlog
from blockbuster import blockbuster_ctx

# Before the loggers of the tests are set up: it sets up those of a process.
from engine import diagnostics  # noqa: F401  # pyright: ignore[reportUnusedImport]
from tests import leaks
from tests.brokers import caches

CPU_S_MAX: Final = 2.0
"""Processor time of this process in a test's own call; other processes' load does not count against it."""
WALL_S_MAX: Final = 10.0
"""For tests that wait, or whose work is done by another process."""

pytest_plugins: Final = ["tests.brokers.fixtures"]

_OURS: Final = ["engine", "events", "projections"]

# A shared machine stalls now and then, so no example has a deadline of its own; the limits above hold.
hypothesis.settings.register_profile("reballast", deadline=None, print_blob=True)
hypothesis.settings.load_profile("reballast")

# Thousands of simulated starts and stops have nothing to tell; what a test expects of the log it captures itself.
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


# The tests start hundreds of processes. Each would compile all sources again where the environment says that nothing
# may be written beside them; here they are compiled once, and kept elsewhere.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("PYTHONPYCACHEPREFIX", str(caches.directory() / "bytecode"))


@pytest.fixture(scope="session", autouse=True)
def _nothing_blocks_the_loop() -> Iterator[None]:
    """A blocking call that our code makes inside a running loop raises BlockingError.

    The door looks at the few objects that it writes without a thread, which would take longer than the look.
    """
    with blockbuster_ctx(_OURS) as blocking:
        for function in blocking.functions.values():
            function.can_block_in("engine/writing/stored_objects.py", {"_objects", "_cluster"})
            function.can_block_in("engine/log/kafka/extents.py", {"around", "rows"})
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_secret_is_logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fails the run where a process of any test logged a token, a key, or local variables."""
    yield
    found = leaks.leaks(tmp_path_factory.getbasetemp())
    assert not found, "secrets in logs:\n" + "\n".join(found)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of a folder together, in their random order: its servers end with the last of them.

    Servers that wait for nothing still cost a third of a core together, and slow down all other tests.
    """
    folders: dict[Path, int] = {}
    for item in items:
        folders.setdefault(item.path.parent, len(folders))
    items.sort(key=lambda item: folders[item.path.parent])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fails a test that passed but lasted too long, unless it is marked slow."""
    cpu, wall = time.process_time(), time.perf_counter()
    yield
    if item.get_closest_marker("slow") is not None:
        return
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    if cpu > CPU_S_MAX or wall > WALL_S_MAX:
        pytest.fail(
            f"{cpu:.1f} s of processor time, {wall:.1f} s in all; at most {CPU_S_MAX:.0f} s and"
            f" {WALL_S_MAX:.0f} s are allowed. Make it faster, or mark it with pytest.mark.slow.",
            pytrace=False,
        )
