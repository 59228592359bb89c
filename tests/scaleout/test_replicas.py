"""Replicas and their view processes are killed or frozen: others continue, with one order of records.

``python -m tests.scaleout kill 20`` plays more faults.
"""

import asyncio
import itertools

import pytest

from tests.rounds import ROUNDS
from tests.scaleout import pairs
from tests.scaleout.history import History
from tests.scaleout.installation import Installation
from tests.waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

_ANSWERED_S = 120.0


def test_killed_views_process_is_replaced(replicated: Installation) -> None:
    for _ in range(ROUNDS):
        for api in replicated.apis:
            until(api.kill_views, lambda: replicated.with_output("no views process to be killed"))
        replicated.load.until_more(1, _ANSWERED_S, lambda: replicated.with_output("no answers"))

    replicated.prove()


def test_writes_continue_at_once_while_replicas_are_frozen(replicated: Installation) -> None:
    fault_in_turn(replicated, "freeze")


def test_writes_continue_at_once_in_one_order_while_replicas_are_killed(replicated: Installation) -> None:
    log_history = fault_in_turn(replicated, "kill")

    # The remaining replica numbers records from then on, so every kill after the first is of the numbering one.
    assert _hand_overs(log_history) >= ROUNDS


def fault_in_turn(replicated: Installation, kind: str) -> History:
    """Kill or freeze the replicas in turn; return the proved history, without late or stale responses."""
    figures = pairs.Figures()
    for index in range(ROUNDS + 1):
        asyncio.run(pairs.fault(replicated, figures, kind, index))

    assert figures.wrong() == [], figures.summary()
    return replicated.prove()


def _hand_overs(log_history: History) -> int:
    """Return how often another replica took over the numbering."""
    writers = [entry.data["by"] for entry in log_history.sequence if entry.data["first"]]
    return sum(writer != other for writer, other in itertools.pairwise(writers))
