"""Too little room for all: what preemption promises holds for every seed, and what breaks a promise is caught."""

import msgspec
import pytest

from engine.deciders import preemption, preemption_victims
from events import links
from tests.rounds import ROUNDS
from tests.simulation import profiles

_SEEDS = 10 * ROUNDS
_BATCH = 20
_MOVES = 40
_MORE = 10_000

pytestmark = pytest.mark.slow


async def is_caught(promise: str) -> bool:
    """Whether one of some seeds breaks the promise; the first that does is enough."""
    for seed in range(40):
        played = await profiles.play(profiles.PRIORITIES, seed, _MOVES)
        if any(line.startswith(promise) for line in played.wrong):
            return True
    return False


@pytest.mark.parametrize("start", range(0, _SEEDS, _BATCH))
async def test_what_preemption_promises_holds(start: int) -> None:
    assert await profiles.failing(profiles.PRIORITIES, range(start, start + _BATCH), _MOVES) == ""


async def test_who_makes_others_leave_that_are_no_less_important_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offering, choosing = preemption_victims.occupants, preemption.victims

    def generous(asked: links.CapacityRequested, *others: object) -> object:
        as_high = msgspec.structs.replace(asked, priority=asked.priority + _MORE)
        return offering(as_high, *others)  # pyright: ignore[reportArgumentType]  # handed on as it came

    def ruthless(shortage: object, priority: int, found: object) -> object:
        return choosing(shortage, priority + _MORE, found)  # pyright: ignore[reportArgumentType]  # as above

    monkeypatch.setattr(preemption_victims, "occupants", generous)
    monkeypatch.setattr(preemption, "victims", ruthless)
    assert await is_caught("preempted:")


async def test_a_hold_that_ends_too_early_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption_victims, "HOLD_SECONDS", 1)
    assert await is_caught("held:")
