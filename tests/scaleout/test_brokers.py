"""Three brokers are killed in turn: clients see no failure, and nothing is lost."""

import time
from pathlib import Path

import pytest

from tests.brokers.processes import LocalBrokers
from tests.rounds import ROUNDS
from tests.scaleout.installation import installed

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]

_ANSWERED_S = 180.0


def test_repeated_kills_of_one_of_three_brokers_lose_nothing(tmp_path: Path) -> None:
    slowest_s = 0.0
    with LocalBrokers(3) as brokers, installed(brokers.servers, tmp_path) as running:
        for number in range(ROUNDS):
            victim = 1 + number % 3
            brokers.kill(victim)
            killed_s = time.monotonic()
            running.load.until_more(2, _ANSWERED_S, lambda: running.with_output("no answers"))
            running.until_decided()
            slowest_s = max(slowest_s, time.monotonic() - killed_s)
            brokers.up(victim)
            brokers.heal()

        running.prove()

    print(f"{ROUNDS} brokers killed, decided again after {slowest_s:.1f} s at most")  # noqa: T201
