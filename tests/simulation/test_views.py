"""Faulty views are detected: lost updates, changes by a restart, and numbers that do not advance."""

import msgspec
import pytest

from events import decisions, shapes
from events.records import Envelope
from projections import bindings, fold, rebalancers
from projections.port import Rows
from tests.simulation import profiles

_SEEDS = 100
"""So many runs are enough, whatever moves there are; the first that is caught ends it."""
_MOVES = 40


@pytest.mark.slow
async def test_view_that_misses_evictions_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless(bindings.Bindings):
        def take(self, key_id: int, number: int, at_ms: int, head: Envelope, data: shapes.Event) -> bool:
            missed = isinstance(data, decisions.EvictionStarted)
            return missed or super().take(key_id, number, at_ms, head, data)

    monkeypatch.setattr(fold, "Bindings", Careless)
    assert await profiles.is_violated(profiles.EDITS, "1: view bindings", _SEEDS, _MOVES)


@pytest.mark.slow
async def test_view_changed_by_a_restart_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(rebalancers.Rebalancers):
        def _load(self, key: int) -> rebalancers.Rebalancer | None:
            rebalancer = super()._load(key)
            return rebalancer and msgspec.structs.replace(rebalancer, observed={})

    monkeypatch.setattr(fold, "Rebalancers", Forgetful)
    assert await profiles.is_violated(profiles.EDITS, "2: view rebalancers", _SEEDS, _MOVES)


@pytest.mark.slow
async def test_view_with_a_stale_number_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stale(bindings.Bindings):
        def flush(self, rows: Rows) -> None:
            super().flush(rows)
            rows.write("UPDATE bindings SET number = ?", [(1,)])

    monkeypatch.setattr(fold, "Bindings", Stale)
    assert await profiles.is_violated(profiles.EDITS, "8: view bindings", _SEEDS, _MOVES)
