"""Storms: whatever fails, comes back, comes late or dies in the midst, what failover promises holds in every run.

A seed that fails says how it is played again; what these runs found stands in ``tests/deciders/test_watching.py`` and
``test_found_by_simulation.py``.
"""

from collections.abc import Callable, Sequence

import pytest

from engine.deciders import application_failover, cluster_health, dispatch, eviction_rules, taint_manager
from engine.deciders.state import Binding
from tests.rounds import ROUNDS
from tests.simulation import profiles

_SEEDS = 30 * ROUNDS
_BATCH = 40
_MOVES = 50


async def wrong(seeds: range, count: int = _MOVES) -> str:
    return await profiles.failing(profiles.STORMS, seeds, count)


async def is_caught(promise: str) -> bool:
    """Whether one of some seeds breaks the promise; the first that does is enough."""
    for seed in range(60):
        played = await profiles.play(profiles.STORMS, seed, _MOVES)
        if any(line.startswith(promise) for line in played.wrong):
            return True
    return False


@pytest.mark.parametrize("start", range(0, 36, 3))
async def test_what_failover_promises_holds_in_short_storms(start: int) -> None:
    assert await wrong(range(start, start + 3), 12) == ""


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1_000, 1_000 + _SEEDS, _BATCH))
async def test_what_failover_promises_holds(start: int) -> None:
    assert await wrong(range(start, start + _BATCH)) == ""


@pytest.mark.slow
async def test_a_failing_seed_says_how_it_is_played_again_and_what_happened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_health, "CONFIRM_MS", 0)
    told = await wrong(range(20))
    assert "python -m tests.simulation storms " in told
    assert "ClusterHealthChanged(" in told
    assert "ClusterJudged(" in told


@pytest.mark.slow
async def test_clusters_that_count_as_failed_at_once_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_health, "CONFIRM_MS", 29_000)
    assert await is_caught("flap: member")


@pytest.mark.slow
async def test_workloads_that_leave_too_early_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application_failover, "_SECOND_MS", 900)
    assert await is_caught("flap: default/")


@pytest.mark.slow
async def test_many_clusters_that_are_emptied_at_once_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_health, "PACE_MS", 9_000)
    assert await is_caught("pace:")


@pytest.mark.slow
async def test_a_crowd_that_is_emptied_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_health, "CROWD_PERCENT", 80)
    assert await is_caught("pace:")


@pytest.mark.slow
async def test_an_old_copy_that_goes_before_the_new_one_is_healthy_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real: Callable[..., eviction_rules.Assessment] = eviction_rules.assess

    def hasty(
        tasks: Sequence[eviction_rules.Task], clusters: eviction_rules.Targets, _: object, **options: object
    ) -> eviction_rules.Assessment:
        return real(tasks, clusters, {name for name, _ in clusters}, **options)

    monkeypatch.setattr(eviction_rules, "assess", hasty)
    assert await is_caught("budget:")


@pytest.mark.slow
async def test_an_eviction_that_is_not_graceful_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_DIRECTLY", "Gracefully")
    assert await is_caught("budget:")


@pytest.mark.slow
async def test_an_eviction_that_nobody_ends_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., int] = taint_manager.due_ms

    def forgetful(binding: Binding, *args: object) -> int:
        return 0 if binding.tasks else real(binding, *args)

    monkeypatch.setattr(taint_manager, "due_ms", forgetful)
    assert await is_caught("rest:")
