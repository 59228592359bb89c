"""Overall quotas, and workloads together or apart: the invariants hold for every seed, and a violation is detected."""

import pytest

from engine.deciders import overall_quotas
from engine.deciders.step_outputs import Outputs
from tests.rounds import ROUNDS
from tests.simulation import profiles

_SEEDS = 20 * ROUNDS
_BATCH = 5
_MOVES = 40


@pytest.mark.parametrize("start", range(0, _SEEDS, _BATCH))
async def test_invariants_hold_while_bindings_wait_for_quotas_and_groups(start: int) -> None:
    assert await profiles.failing(profiles.QUOTAS, range(start, start + _BATCH), _MOVES) == ""


async def test_use_that_is_not_reported_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object) -> Outputs[None]:
        """Report nothing."""
        yield from ()

    monkeypatch.setattr(overall_quotas, "settle", silent)
    for seed in range(10):
        played = await profiles.play(profiles.QUOTAS, seed, _MOVES)
        if any(line.startswith("quota ") for line in played.wrong):
            return
    raise AssertionError("no seed detects it")
