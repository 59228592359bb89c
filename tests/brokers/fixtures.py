"""The fixture ``kafka``: one broker for the whole test run, started at its first use.

Tests that use it are marked ``kafka``; tests with their own ``LocalBrokers`` set the mark themselves. Without
a broker the run ends at once with exit code 3.
"""

from collections.abc import Generator, Sequence
from typing import Final, NoReturn

import pytest

from tests.brokers import choosing, preparing

NO_BROKER: Final = 3
"""Exit code of a run without a broker."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use the fixture."""
    for item in items:
        if _needs_kafka(item):
            item.add_marker("kafka")


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Download what local brokers need before the first test, so that it does not count as test time."""
    if not session.config.option.collectonly:
        try:
            if _need_local(session.items):
                preparing.prepare()
        except Exception as error:  # noqa: BLE001  # whatever it is, there is no broker
            _give_up(error)
    return (yield)


@pytest.fixture(scope="session")
def kafka() -> Generator[str]:
    """Bootstrap servers of a broker; tests must use their own topics, groups and transactional ids."""
    context = choosing.broker(choosing.way())
    try:
        servers = context.__enter__()
    except Exception as error:  # noqa: BLE001  # as above
        _give_up(error)
    try:
        yield servers
    finally:
        context.__exit__(None, None, None)


def _need_local(items: Sequence[pytest.Item]) -> bool:
    marked = [item for item in items if item.get_closest_marker("kafka") is not None]
    if all(_needs_kafka(item) for item in marked):
        return bool(marked) and choosing.way() is choosing.Way.LOCAL
    return True


def _needs_kafka(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and "kafka" in item.fixturenames


def _give_up(error: Exception) -> NoReturn:
    pytest.exit(f"no Kafka broker for the tests: {type(error).__name__}: {error}", returncode=NO_BROKER)
