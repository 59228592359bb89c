"""Workers die, freeze, join and leave while others write: what was said is decided, once, by the owner of the day."""

import time
from typing import Final

import pytest

from tests.scaleout.installation import ROUNDS, Installation
from tests.scaleout.processes import Worker

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

FENCED: Final = "ownership ended by another owner"
_ASSIGNED_S: Final = 30.0


def test_killed_workers_lose_nothing_and_others_go_on(running: Installation) -> None:
    for number in range(ROUNDS):
        victim = running.workers[number % 2]
        victim.kill()
        victim.launch()
        running.until_decided()

    running.prove()

    print(f"{ROUNDS} workers killed, slowest hand-over {running.slowest_s:.1f} s")  # noqa: T201


def test_a_frozen_owner_is_followed_and_fenced_when_it_goes_on(running: Installation) -> None:
    fenced = 0
    for number in range(ROUNDS):
        frozen, other = running.workers[number % 2], running.workers[1 - number % 2]
        before = _takeovers(other)
        frozen.pause()
        other.wait_until(lambda: _takeovers(other) > before, _ASSIGNED_S)  # noqa: B023  # called at once
        running.until_decided()
        frozen.resume()
        # It is behind, takes a step, is told that it was followed, and joins again.
        before = frozen.said().count(FENCED)
        frozen.wait_until(lambda: frozen.said().count(FENCED) > before, _ASSIGNED_S)  # noqa: B023  # as above
        fenced += 1
        running.until_decided()

    running.prove()

    assert fenced == ROUNDS
    print(f"{fenced} owners fenced, slowest hand-over {running.slowest_s:.1f} s")  # noqa: T201


def test_workers_that_join_and_leave_all_the_time_hand_over_without_a_gap(running: Installation) -> None:
    guests = [Worker(f"guest{number}", running.log, running.directory) for number in range(3)]
    try:
        for number in range(ROUNDS):
            began_s = time.monotonic()
            # One comes, the one that came before the last goes: every second somebody does both.
            joining, leaving = guests[number % 3], guests[(number + 1) % 3]
            joining.launch()
            if number > 1:
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


def _takeovers(worker: Worker) -> int:
    return worker.said().count("shards recovered")
