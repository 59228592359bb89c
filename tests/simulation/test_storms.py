"""Storms of failures, recoveries, late reports and crashes: the invariants of failover hold in every run.

A failing seed prints the command that repeats it. Faults found here are examples in
``tests/deciders/cluster_health`` and ``test_found_by_simulation.py``.
"""

from collections.abc import Callable, Sequence

import pytest

from engine.deciders import cluster_health, eviction_rules, taint_manager
from engine.deciders.state import Binding
from engine.domain.bindings import Targets
from events import decisions, times, vocabulary
from tests.rounds import ROUNDS
from tests.simulation import profiles

_SEEDS = 30 * ROUNDS
_BATCH = 10
_MOVES = 50
_FIRST = 60


async def wrong(seeds: range, count: int = _MOVES) -> str:
    return await profiles.failing(profiles.STORMS, seeds, count)


@pytest.mark.parametrize("start", range(0, 12, 3))
async def test_failover_invariants_hold_in_short_storms(start: int) -> None:
    assert await wrong(range(start, start + 3), 12) == ""


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1_000, 1_000 + _SEEDS, _BATCH))
async def test_failover_invariants_hold(start: int) -> None:
    assert await wrong(range(start, start + _BATCH)) == ""


@pytest.mark.slow
async def test_failing_seed_prints_its_command_and_timeline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_health, "CONFIRM_MS", 0)
    output = await wrong(range(20))
    assert "python -m tests.simulation storms " in output
    assert "cluster-health-changed" in output
    assert "cluster-judged" in output


@pytest.mark.slow
async def test_taint_before_confirmation_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_health, "CONFIRM_MS", 29_000)
    assert await profiles.is_violated(profiles.STORMS, "flap: member", _FIRST, _MOVES)


@pytest.mark.slow
async def test_early_application_failover_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "SECOND_MS", 900)
    assert await profiles.is_violated(profiles.STORMS, "flap: default/", _FIRST, _MOVES)


@pytest.mark.slow
async def test_missing_pause_between_emptied_clusters_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_health, "PACE_MS", 9_000)
    assert await profiles.is_violated(profiles.STORMS, "pace:", _FIRST, _MOVES)


@pytest.mark.slow
async def test_emptying_during_a_mass_failure_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_health, "MASS_FAILURE_PERCENT", 80)
    assert await profiles.is_violated(profiles.STORMS, "pace:", _FIRST, _MOVES)


@pytest.mark.slow
async def test_eviction_finished_before_a_healthy_replacement_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real: Callable[..., eviction_rules.Assessment] = eviction_rules.assess

    def hasty(
        tasks: Sequence[decisions.EvictionStarted], clusters: Targets, _: object, **options: object
    ) -> eviction_rules.Assessment:
        return real(tasks, clusters, {name for name, _ in clusters}, **options)

    monkeypatch.setattr(eviction_rules, "assess", hasty)
    assert await profiles.is_violated(profiles.STORMS, "budget:", _FIRST, _MOVES)


@pytest.mark.slow
async def test_ungraceful_eviction_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "PURGE_DIRECTLY", "Gracefully")
    assert await profiles.is_violated(profiles.STORMS, "budget:", _FIRST, _MOVES)


@pytest.mark.slow
async def test_eviction_that_never_ends_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., int] = taint_manager.due_ms

    def forgetful(binding: Binding, *args: object) -> int:
        return 0 if binding.tasks else real(binding, *args)

    monkeypatch.setattr(taint_manager, "due_ms", forgetful)
    assert await profiles.is_violated(profiles.STORMS, "rest:", _FIRST, _MOVES)
