"""Too little capacity for all: the invariants of preemption hold for every seed, and violations are detected."""

import msgspec
import pytest

from engine.deciders import preemption, preemption_victims
from events import links
from tests.rounds import ROUNDS
from tests.simulation import profiles

_SEEDS = 10 * ROUNDS
_BATCH = 10
_MOVES = 40
_FIRST = 40
_MORE = 10_000

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("start", range(0, _SEEDS, _BATCH))
async def test_preemption_invariants_hold(start: int) -> None:
    assert await profiles.failing(profiles.PRIORITIES, range(start, start + _BATCH), _MOVES) == ""


async def test_preemption_of_equal_priorities_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offering, choosing = preemption_victims.occupants, preemption.victims

    def generous(request: links.CapacityRequested, *others: object) -> object:
        as_high = msgspec.structs.replace(request, priority=request.priority + _MORE)
        return offering(as_high, *others)  # pyright: ignore[reportArgumentType]  # handed on as it came

    def ruthless(shortage: object, priority: int, candidates: object) -> object:
        return choosing(shortage, priority + _MORE, candidates)  # pyright: ignore[reportArgumentType]  # as above

    monkeypatch.setattr(preemption_victims, "occupants", generous)
    monkeypatch.setattr(preemption, "victims", ruthless)
    assert await profiles.is_violated(profiles.PRIORITIES, "preempted:", _FIRST, _MOVES)


async def test_hold_that_ends_too_early_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption_victims, "EXCLUSION_SECONDS", 1)
    assert await profiles.is_violated(profiles.PRIORITIES, "held:", _FIRST, _MOVES)
