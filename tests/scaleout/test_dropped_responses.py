"""Requests without a response: their outcome is unknown, and nothing is lost or repeated."""

import random
import time
from pathlib import Path

import pytest

from tests.rounds import ROUNDS
from tests.scaleout.installation import Installation, installed
from tests.scaleout.proxy import Proxy, proxied
from tests.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]

_SEED = "silence"
_SECONDS = (0.5, 6.0)
_SWALLOWED_S = 60.0
_UNKNOWN = "it is unknown whether"
_PATIENT_MS = 2_000
"""So long a request waits for its answer; some silences are shorter, most are longer."""


def test_unknown_outcomes_of_dropped_responses_are_resolved(tmp_path: Path) -> None:
    chance = random.Random(_SEED)  # noqa: S311  # moments of a test
    patience = {"REBALLAST_REQUEST_MS": str(_PATIENT_MS)}
    with proxied(_SEED) as (_broker, proxy):
        servers = f"127.0.0.1:{proxy.port}"
        with installed(servers, tmp_path, environment=patience) as running:
            number = 0
            while number < ROUNDS or not unknown_outcomes(running):
                number += 1
                # The last silences are on all connections, so that they hit an append soon.
                share = chance.choice([0.3, 0.6, 1.0]) if number < ROUNDS else 1.0
                silence(proxy, share, chance.uniform(*_SECONDS))
                running.until_decided()

            running.prove()
            unknown = unknown_outcomes(running)

    assert unknown > 0
    print(f"{number} silences, {unknown} unknown outcomes")  # noqa: T201


def silence(proxy: Proxy, share: float, seconds: float) -> None:
    """Drop the responses on a share of the connections for some seconds, and at least one of them."""
    before = proxy.swallowed
    proxy.drop_responses(share)
    time.sleep(seconds)
    until(lambda: proxy.swallowed > before, lambda: "no response came", _SWALLOWED_S)
    proxy.answer()


def unknown_outcomes(running: Installation) -> int:
    """Return how many appends ended without an answer, by the logs of all processes."""
    return sum(process.output().count(_UNKNOWN) for process in (*running.workers, *running.apis))
