"""Rules for every test: time limits without the mark ``slow``, no blocking calls in event loops, no logged secrets."""

import gc
import logging
import os
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

import hypothesis
import pytest
import structlog
from _pytest.nodeid import NodeId
from blockbuster import blockbuster_ctx
from hypothesis import strategies
from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs]

# Imported before the loggers of the tests are configured: the import configures those of a process.
from engine import diagnostics  # noqa: F401  # pyright: ignore[reportUnusedImport]
from tests import lanes, leaks, speed
from tests.brokers import caches
from tests.rounds import ROUNDS

CPU_S_MAX: Final = 3.0
"""Processor time of this process in a test's own call, on a machine of the speed in ``tests.speed``."""
SERVERS: Final = frozenset({"served", "control_plane", "control_plane_on_sqlite", "control_plane_on_kafka"})
"""Fixtures that start a server as a process."""
SUMMARIZED_S: Final = 60.0
"""From how many seconds on a run ends with a summary by folder."""
EXAMPLES_MAX: Final = 40 * ROUNDS
"""Examples of a property in one run; the seeds are new in each run, so many runs try many."""
QUICK_EXAMPLES_MAX: Final = EXAMPLES_MAX * 3 // 8
"""The same in a run without slow tests, which is repeated after every change."""
WALL_S_MAX: Final = 60.0
"""For tests that wait, or whose work is done by another process; generous, since others' load counts too."""

pytest_plugins: Final = ["tests.brokers.fixtures", "tests.virtual_time"]

_OURS: Final = ["engine", "events", "projections"]

# A shared machine stalls now and then, so examples have no deadline of their own; the limits above apply.
hypothesis.settings.register_profile("reballast", deadline=None, print_blob=True, max_examples=EXAMPLES_MAX)
hypothesis.settings.register_profile(
    "quick", hypothesis.settings.get_profile("reballast"), max_examples=QUICK_EXAMPLES_MAX
)
hypothesis.settings.load_profile("reballast")

# A collection of the garbage visits all modules and tests of the suite and finds hardly anything, so it is rare.
gc.set_threshold(50_000, 10, 20)

# Simulated starts and stops would log thousands of lines; a test that checks log events captures them itself.
structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


# The tests start hundreds of processes. If the environment forbids bytecode files beside the sources, each
# process would compile all sources again; here they are compiled once, into a cache directory. So are the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(caches.directory() / "bytecode"))


@pytest.fixture(scope="session", autouse=True)
def _nothing_blocks_the_loop() -> Iterator[None]:
    """Raise BlockingError if our code makes a blocking call inside a running loop.

    The write API checks the few objects that it writes without a thread, which would take longer than the
    check.
    """
    with blockbuster_ctx(_OURS) as blocking:
        for function in blocking.functions.values():
            function.can_block_in("engine/writing/write_api.py", {"objects", "cluster"})
            function.can_block_in("engine/http/kube/control_plane.py", {"_stored"})
            function.can_block_in("engine/log/kafka/extents.py", {"around", "rows"})
            # A reader has an event loop of its own, in a thread or a process.
            reading = {"__init__", "read", "read_all", "read_share", "aclose"}
            function.can_block_in("engine/log/sqlite_reading.py", reading)
            # A garbage collection in the loop may remove semaphores of a process pool that ended in a thread.
            function.can_block_in("multiprocessing/resource_tracker.py", {"_check_alive", "_send"})
        yield


@pytest.fixture(scope="session", autouse=True)
def _characters_are_known() -> None:
    """Let Hypothesis make its table of characters, which a new checkout lacks: it takes as long as a test may."""
    hypothesis.find(strategies.text(), lambda _text: True, settings=hypothesis.settings(database=None))


@pytest.fixture(scope="session", autouse=True)
def _no_secret_is_logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail the run if a process of any test logged a token, a key, or local variables."""
    yield
    leaked = leaks.leaks(tmp_path_factory.getbasetemp())
    assert not leaked, "secrets in logs:\n" + "\n".join(leaked)


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer examples of each property if the run leaves out slow tests."""
    if "not slow" in config.option.markexpr:
        hypothesis.settings.load_profile("quick")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that need a running server as slow: starting it takes longer than any limit. Name each test."""
    if not item.nodeid.endswith(item.name):
        # Schemathesis names its tests by operation, but leaves them the id of their function.
        item._id = NodeId.parse(f"{item.nodeid.partition('::')[0]}::{item.name}")  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if isinstance(item, pytest.Function) and not SERVERS.isdisjoint(item.fixturenames):
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of a folder together, in their random order: its servers end with the last of them.

    Servers that wait for nothing still cost a third of a core together, and slow down all other tests. The longest
    units come first, so that several processes end at the same time. Of tests with the same id, several processes
    would run one only.
    """
    ids = Counter(item.nodeid for item in items)
    if len(ids) < len(items):
        raise pytest.UsageError(f"tests with the same id: {[test_id for test_id in ids if ids[test_id] > 1]}")
    folders: dict[Path, int] = {}
    for item in items:
        folders.setdefault(item.path.parent, len(folders))
    items.sort(key=lambda item: (lanes.position(item.nodeid), folders[item.path.parent]))


def pytest_collection_finish() -> None:
    """Leave what the collection created, all of which lasts for the whole run, out of garbage collections."""
    gc.collect()
    gc.freeze()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> lanes.Scheduling:
    """Return the scheduler that keeps tests with shared servers in one process; it overrides ``--dist``."""
    return lanes.Scheduling(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print where the time of a long run went, folder by folder."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0].rpartition("/")[0]] += report.duration
    if sum(seconds.values()) >= SUMMARIZED_S:
        terminalreporter.section("seconds by folder")
        for folder in sorted(seconds, key=seconds.__getitem__, reverse=True):
            terminalreporter.line(f"{seconds[folder]:8.1f} {folder}")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Fail a test that leaves a signal handler behind, such as that of a server that it stopped.

    Event streams of later servers in this process would take that server for theirs, and end at once.
    """
    handler = signal.getsignal(signal.SIGTERM)
    result = yield
    left = signal.getsignal(signal.SIGTERM)
    if left != handler:
        signal.signal(signal.SIGTERM, handler)
        pytest.fail(f"the signal handler {left} is left behind", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that passed but took too long, unless it is marked slow.

    The limit grows with what the machine needs for a fixed computation at that moment, since machines differ by
    half and more, and a processor shared with others slows down.
    """
    cpu, wall = time.process_time(), time.perf_counter()
    yield
    if item.get_closest_marker("slow") is not None:
        return
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    if wall > WALL_S_MAX or (cpu > CPU_S_MAX and cpu > CPU_S_MAX * speed.slowness()):
        pytest.fail(
            f"{cpu:.1f} s of processor time, {wall:.1f} s in all; at most {CPU_S_MAX:.0f} s and"
            f" {WALL_S_MAX:.0f} s are allowed. Make it faster, or mark it with pytest.mark.slow.",
            pytrace=False,
        )
