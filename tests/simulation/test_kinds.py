"""Custom kinds, Jobs, cluster-scoped templates and imports: the invariants hold, and violations are detected."""

from collections.abc import Callable

import pytest

from engine.deciders import dispatch, scheduling
from engine.deciders.state import Binding
from engine.deciders.step_outputs import Outputs
from tests.rounds import ROUNDS
from tests.simulation import profiles

_SEEDS = 15 * ROUNDS
_BATCH = 5
_MOVES = 40
_FIRST = 40


@pytest.mark.parametrize("start", range(0, _SEEDS, _BATCH))
async def test_invariants_hold_for_all_kinds_and_placements(start: int) -> None:
    assert await profiles.failing(profiles.KINDS, range(start, start + _BATCH), _MOVES) == ""


@pytest.mark.slow
async def test_missing_retry_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> bool:
        return False

    monkeypatch.setattr(scheduling, "_may_retry", never)
    monkeypatch.setattr(scheduling, "_FORCES_PASS", 0)
    assert await profiles.is_violated(profiles.KINDS, "unplaced:", _FIRST, _MOVES)


@pytest.mark.slow
async def test_lost_work_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., Outputs[None]] = dispatch.decide

    def forgetful(binding: Binding, *args: object, **options: object) -> Outputs[None]:
        clusters = binding.clusters
        binding.clusters = clusters[:-1] if binding.reports else clusters
        yield from real(binding, *args, **options)
        binding.clusters = clusters

    monkeypatch.setattr(dispatch, "decide", forgetful)
    assert await profiles.is_violated(profiles.KINDS, "lost:", _FIRST, _MOVES)
