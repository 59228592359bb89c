"""Broker connections break repeatedly: all processes continue, and nothing is lost or repeated."""

import random
import time
from pathlib import Path

import pytest

from tests.rounds import ROUNDS
from tests.scaleout.installation import installed
from tests.scaleout.proxy import proxied

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]

_SEED = "resets"
_PER_ROUND = 20
_PAUSE_S = (0.01, 0.1)


def test_broken_connections_are_reestablished(tmp_path: Path) -> None:
    chance = random.Random(_SEED)  # noqa: S311  # moments of a test
    with proxied(_SEED) as (_broker, proxy), installed(f"127.0.0.1:{proxy.port}", tmp_path) as running:
        for _ in range(ROUNDS):
            for _ in range(_PER_ROUND):
                proxy.reset(chance.choice([0.2, 0.5, 1.0]))
                time.sleep(chance.uniform(*_PAUSE_S))
            running.until_decided()

        running.prove()

    assert proxy.broken > ROUNDS * _PER_ROUND
    print(f"{proxy.broken} connections broken, decided again after {running.slowest_s:.1f} s at most")  # noqa: T201
