"""Workers are killed, frozen, added and removed under load: every input is decided once, by the current owner.

The fixture proves the log after the last of the faults.
"""

from typing import Final

import pytest

from events import topics
from tests.rounds import ROUNDS
from tests.scaleout.installation import Installation
from tests.scaleout.processes import Worker

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

FENCED: Final = "ownership ended by another owner"
ASSIGNED: Final = "shards assigned"


def count_logged(worker: Worker, message: str) -> int:
    """Return how often a worker logged a message since its launch."""
    return worker.output().count(message)


def owns_all(worker: Worker) -> bool:
    """Whether the newest assignment that a worker logged has all shards."""
    newest = worker.output().rpartition(ASSIGNED)[2].partition("\n")[0]
    return str([*range(topics.SHARDS)]) in newest


def test_killed_workers_lose_nothing(running: Installation) -> None:
    for number in range(ROUNDS):
        victim = running.workers[number % 2]
        victim.kill()
        victim.launch()
        running.until_decided()

    print(f"{ROUNDS} workers killed, slowest hand-over {running.slowest_s:.1f} s")  # noqa: T201


def test_frozen_owner_is_replaced_and_fenced_when_it_continues(running: Installation) -> None:
    # A worker that was frozen between two turns may hear of its new assignment first, so some attempts are extra.
    fenced = 0
    for number in range(10 * ROUNDS):
        frozen, other = running.workers[number % 2], running.workers[1 - number % 2]
        # A worker whose session has just ended owns no shards; freezing it would cause no takeover.
        other.wait_until(lambda: not owns_all(other))  # noqa: B023  # called at once
        fences, assignments = count_logged(frozen, FENCED), count_logged(frozen, ASSIGNED)
        frozen.pause()
        other.wait_until(lambda: owns_all(other))  # noqa: B023  # called at once
        running.until_decided()
        frozen.resume()
        # It continues its turn, and the brokers report that it was fenced; or it joins the group again first.
        frozen.wait_until(
            lambda: count_logged(frozen, FENCED) > fences or count_logged(frozen, ASSIGNED) > assignments  # noqa: B023  # as above
        )
        running.until_decided()
        fenced += count_logged(frozen, FENCED) > fences
        if fenced == ROUNDS:
            break

    assert fenced == ROUNDS
    print(f"{fenced} owners fenced, slowest hand-over {running.slowest_s:.1f} s")  # noqa: T201


def test_joining_and_leaving_workers_hand_over_without_a_gap(running: Installation) -> None:
    terms = running.terms()
    guests = [Worker(f"guest{number}", running.log, running.directory) for number in range(ROUNDS + 1)]
    try:
        for number, joining in enumerate(guests):
            joining.launch()
            if number:
                # The worker that joined before leaves as soon as it owns shards, while the next one joins.
                leaving = guests[number - 1]
                leaving.wait_until(leaving.has_shards)
                assert leaving.stop() == 0, leaving.last_lines()
        guests[-1].wait_until(guests[-1].has_shards)
        running.until_decided()
    finally:
        for guest in guests:
            guest.kill()
    running.until_decided()

    now = running.terms()
    changes = sum(now[shard] - term for shard, term in terms.items())
    # Each guest took shards over, and others took them when it left or was killed.
    assert changes > len(guests)
    print(f"{len(guests)} workers came and went, {changes} changes of owners")  # noqa: T201
