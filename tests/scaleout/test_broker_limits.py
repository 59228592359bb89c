"""The brokers' limit of transactions, as real brokers say it when a part starts."""

from typing import Any

import pytest
import structlog

from engine.log import port
from engine.log.kafka import broker_limits, topics
from engine.log.kafka.address import Address
from tests.brokers.processes import LocalBrokers

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the check logs."""
    capture = structlog.testing.LogCapture()
    everything = structlog.make_filtering_bound_logger(0)
    logger = structlog.wrap_logger(structlog.PrintLogger(), processors=[capture], wrapper_class=everything)
    monkeypatch.setattr(broker_limits, "_log", logger)
    return capture.entries


def brokers_with(milliseconds: int) -> LocalBrokers:
    return LocalBrokers(1, properties={broker_limits.SETTING: str(milliseconds)})


async def test_brokers_that_leave_transactions_open_for_long_are_warned_of(said: list[Any]) -> None:
    with brokers_with(900_000) as brokers:
        await topics.prepare(Address(servers=brokers.servers, prefix="a."))
    (warning,) = said
    assert (warning["log_level"], warning["brokers"], warning["milliseconds"]) == ("warning", [1], 900_000)
    assert warning["remedy"] == "set transaction.max.timeout.ms=60000 on each broker"


async def test_brokers_that_end_them_in_time_are_not(said: list[Any]) -> None:
    with brokers_with(60_000) as brokers:
        await topics.prepare(Address(servers=brokers.servers, prefix="a."))
    assert said == []


async def test_brokers_that_allow_too_little_are_refused_with_what_to_set() -> None:
    wrong = r"allow transactions of 30000 ms, and \d+ are needed; set transaction\.max\.timeout\.ms=60000"
    with brokers_with(30_000) as brokers, pytest.raises(port.LogError, match=wrong):
        await topics.prepare(Address(servers=brokers.servers, prefix="a."))
