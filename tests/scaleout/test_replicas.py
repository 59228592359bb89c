"""Replicas and their view processes are killed: others continue, with one order of records."""

import asyncio
import itertools
import time

import pytest

from tests.rounds import ROUNDS
from tests.scaleout import pairs
from tests.scaleout.history import History
from tests.scaleout.installation import Installation

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

_ANSWERED_S = 120.0
_CHILD_S = 120.0
_FAULTS = 2
"""``python -m tests.scaleout kill 20`` plays more of them."""


def test_killed_replicas_keep_one_order(replicated: Installation) -> None:
    # The remaining replica numbers records from then on, so every kill after the first is of the numbering one.
    for number in range(ROUNDS + 1):
        victim, other = replicated.apis[number % 2], replicated.apis[1 - number % 2]
        victim.kill()
        victim.launch()
        before = len(replicated.load.acknowledged())
        other.wait_until(lambda: len(replicated.load.acknowledged()) > before + 2)  # noqa: B023  # called at once
        victim.wait_until(victim.answers)

    log_history = replicated.prove()

    assert _hand_overs(log_history) >= ROUNDS
    print(f"{ROUNDS + 1} replicas killed, {_hand_overs(log_history)} times another one gave the numbers")  # noqa: T201


def test_killed_views_process_is_replaced(replicated: Installation) -> None:
    for _ in range(ROUNDS):
        for api in replicated.apis:
            until_s = time.monotonic() + _CHILD_S
            while not api.kill_views():
                assert time.monotonic() < until_s, replicated.with_output("no views process to be killed")
                time.sleep(0.02)
        replicated.load.until_more(1, _ANSWERED_S, lambda: replicated.with_output("no answers"))

    replicated.prove()


@pytest.mark.parametrize("kind", ["kill", "freeze"])
def test_writes_through_another_replica_continue_at_once(replicated: Installation, kind: str) -> None:
    figures = pairs.Figures()
    for index in range(_FAULTS):
        asyncio.run(pairs.fault(replicated, figures, kind, index))

    assert figures.wrong() == [], figures.summary()
    replicated.prove()


def _hand_overs(log_history: History) -> int:
    """Return how often another replica took over the numbering."""
    writers = [entry.data["by"] for entry in log_history.sequence if entry.data["first"]]
    return sum(writer != other for writer, other in itertools.pairwise(writers))
