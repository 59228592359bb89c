"""The brokers' transaction timeout limit, checked against real brokers at the start of a process."""

from collections.abc import Mapping, MutableMapping
from typing import Any

import pytest
import structlog

from engine.log import port
from engine.log.kafka import topics
from engine.log.kafka.address import Address
from tests.brokers.processes import LocalBrokers

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def log_events(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The log events of the check, without the one about the topics that are created after it."""

    def without_topics(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
        if event["event"] == "topics created":
            raise structlog.DropEvent
        return event

    capture = structlog.testing.LogCapture()
    everything = structlog.make_filtering_bound_logger(0)
    logger = structlog.wrap_logger(
        structlog.PrintLogger(), processors=[without_topics, capture], wrapper_class=everything
    )
    monkeypatch.setattr(topics, "_log", logger)
    return capture.entries


def brokers_with(milliseconds: int) -> LocalBrokers:
    return LocalBrokers(1, properties={topics.LIMIT_SETTING: str(milliseconds)})


async def test_long_transaction_timeout_of_brokers_causes_a_warning(log_events: list[Any]) -> None:
    with brokers_with(900_000) as brokers:
        await topics.prepare(Address(servers=brokers.servers, prefix="a."))
    (warning,) = log_events
    assert (warning["log_level"], warning["brokers"], warning["milliseconds"]) == ("warning", [1], 900_000)
    assert warning["remedy"] == "set transaction.max.timeout.ms=60000 on each broker"


async def test_short_transaction_timeout_of_brokers_causes_no_warning(log_events: list[Any]) -> None:
    with brokers_with(60_000) as brokers:
        await topics.prepare(Address(servers=brokers.servers, prefix="a."))
    assert log_events == []


async def test_too_short_transaction_timeout_of_brokers_is_refused_with_a_remedy() -> None:
    wrong = r"allow transactions of 30000 ms, and \d+ are needed; set transaction\.max\.timeout\.ms=60000"
    with brokers_with(30_000) as brokers, pytest.raises(port.LogError, match=wrong):
        await topics.prepare(Address(servers=brokers.servers, prefix="a."))
