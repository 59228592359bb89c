"""Workers are killed, frozen, added and removed under load: every input is decided once, by the current owner."""

import time
from contextlib import suppress
from typing import Final

import pytest

from tests.rounds import ROUNDS
from tests.scaleout.installation import Installation
from tests.scaleout.processes import Worker

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

FENCED: Final = "ownership ended by another owner"
ASSIGNED: Final = "shards assigned"
_NOTICED_S: Final = 3.0


def test_killed_workers_lose_nothing(running: Installation) -> None:
    for number in range(ROUNDS):
        victim = running.workers[number % 2]
        victim.kill()
        victim.launch()
        running.until_decided()

    running.prove()

    print(f"{ROUNDS} workers killed, slowest hand-over {running.slowest_s:.1f} s")  # noqa: T201


def test_frozen_owner_is_replaced_and_fenced_when_it_continues(running: Installation) -> None:
    fenced = 0
    for number in range(2 * ROUNDS):
        frozen, other = running.workers[number % 2], running.workers[1 - number % 2]
        before, terms = frozen.said().count(FENCED), running.terms()
        frozen.pause()
        # Its shards are taken over; a worker that has just joined may have had none yet.
        other.wait_until(lambda: running.terms() != terms)  # noqa: B023  # called at once
        running.until_decided()
        frozen.resume()
        with suppress(AssertionError):
            # It continues its turn, and the brokers report that it was fenced.
            frozen.wait_until(lambda: frozen.said().count(FENCED) > before, _NOTICED_S)  # noqa: B023  # as above
            fenced += 1
        running.until_decided()
        if fenced == ROUNDS:
            break

    running.prove()

    assert fenced == ROUNDS
    print(f"{fenced} owners fenced, slowest hand-over {running.slowest_s:.1f} s")  # noqa: T201


def test_joining_and_leaving_workers_hand_over_without_a_gap(running: Installation) -> None:
    guests = [Worker(f"guest{number}", running.log, running.directory) for number in range(ROUNDS)]
    try:
        for number, joining in enumerate(guests):
            began_s = time.monotonic()
            joining.launch()
            if number > 1:
                # A worker that joined two rounds ago leaves as soon as it owns shards.
                leaving = guests[number - 2]
                leaving.wait_until(lambda: ASSIGNED in leaving.said())  # noqa: B023  # called at once
                assert leaving.stop() == 0, leaving.last_lines()
            time.sleep(max(began_s + 1.0 - time.monotonic(), 0))
        running.until_decided()
    finally:
        for guest in guests:
            guest.kill()
    running.until_decided()

    found = running.prove()

    terms = [entry.data["term"] for entry in found.of("decisions") if entry.kind == "step-taken"]
    assert max(terms) > ROUNDS / 4
    print(f"{ROUNDS} workers came and went, up to {max(terms)} terms")  # noqa: T201
