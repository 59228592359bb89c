"""The placement benchmark runs in each mode, and reports Karmada's figures."""

import pytest

from engine.bench import placement


@pytest.mark.parametrize("prefix", ["", "steady-", "fresh-"])
@pytest.mark.parametrize("mode", placement.MODES)
def test_benchmark_measures_every_mode(prefix: str, mode: str) -> None:
    figures = placement.run(10, prefix + mode, seconds=0.01)
    assert isinstance(figures["decisions_per_s"], float)
    assert figures["decisions_per_s"] > 0
    assert figures["mode"] == prefix + mode
    assert figures["placed_share"] == 1.0


def test_unknown_mode_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="dynamic, aggregated, region"):
        placement.run(10, "sideways", seconds=0.01)


def test_figures_of_karmada_are_reported() -> None:
    figures = placement.run(10, "dynamic", seconds=0.01)
    assert figures["karmada_per_s"] == placement.KARMADA_PER_S[10]["dynamic"]
    assert figures["times_karmada"] is not None


def test_replicas_beyond_the_capacity_count_as_not_placed() -> None:
    assert placement.run(10, "dynamic", seconds=0.01, replicas=100_000)["placed_share"] == 0.0
