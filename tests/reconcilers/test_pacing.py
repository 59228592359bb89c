"""Pacing of turns: short pauses under load to gather inputs, and none otherwise."""

from hypothesis import given
from hypothesis import strategies as st

from engine.reconcilers.turns import GATHER_S, Pace

_LITTLE, _MUCH, _FULL = 30, 300, 3_000


def test_light_load_causes_no_pauses() -> None:
    pace = Pace()

    assert [pace.pause_s(_LITTLE, now_s=10.0 + turn / 10) for turn in range(20)] == [0.0] * 20


def test_heavy_load_causes_short_pauses() -> None:
    pace = Pace()
    now_s = 10.0
    for _ in range(20):
        pause_s = pace.pause_s(_MUCH, now_s)
        assert 0.0 < pause_s <= GATHER_S
        now_s += pause_s + 0.02


def test_full_turn_is_followed_without_a_pause() -> None:
    pace = Pace()

    assert [pace.pause_s(_FULL, now_s=10.0 + turn / 10) for turn in range(5)] == [0.0] * 5


def test_pauses_end_with_the_first_quiet_turn() -> None:
    pace = Pace()
    assert pace.pause_s(_MUCH, now_s=10.0) > 0.0

    assert pace.pause_s(_LITTLE, now_s=10.0 + GATHER_S) == 0.0


@given(st.lists(st.tuples(st.integers(0, 5_000), st.floats(0.0, 1.0)), max_size=50))
def test_pause_never_exceeds_its_limit(turns: list[tuple[int, float]]) -> None:
    pace, now_s = Pace(), 10.0
    for records_taken, took_s in turns:
        pause_s = pace.pause_s(records_taken, now_s)
        assert 0.0 <= pause_s <= GATHER_S
        now_s += pause_s + took_s
